// The viewer inside an exported report: the run lies in the page as JSON, nothing is fetched.

import type { Saved } from '../core/protocol';
import { RunStore } from '../core/store';
import { mount } from '../views/app';

const data = document.getElementById('kf-run');
const place = document.getElementById('kf-view');
if (data && place) {
  const store = new RunStore();
  store.apply({ ...(JSON.parse(data.textContent ?? '') as Saved), kind: 'reset' });
  mount(place, store);
}
