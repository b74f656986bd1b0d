"""Where the budget goes: one tree per region, one budget across them (search.md)."""
