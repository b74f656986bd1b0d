"""What a forked worker of the fault test has loaded already."""

import distributed  # noqa: F401
import pandas as pd  # noqa: F401
import psutil  # noqa: F401
import psycopg  # noqa: F401

import kernelforge_lab.conversation
import kernelforge_lab.proposers.llm.proposer
import kernelforge_lab.run
import kernelforge_lab.store  # noqa: F401
