/** What Lab's and Lumino's widgets want of a browser and jsdom lacks. */

import { configure } from '@testing-library/dom';

// A busy machine is slow; a test that fails anyway fails as surely later.
configure({ asyncUtilTimeout: 10_000 });

class Observer {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}

const missing = {
  DragEvent: class extends MouseEvent {},
  ResizeObserver: Observer,
  IntersectionObserver: Observer,
  matchMedia: () => ({
    matches: false,
    addEventListener() {},
    removeEventListener() {},
    addListener() {},
    removeListener() {}
  }),
  requestIdleCallback: (run: () => void) => window.setTimeout(run, 0),
  cancelIdleCallback: (id: number) => window.clearTimeout(id)
};

Object.assign(globalThis, missing);
Element.prototype.scrollIntoView = () => {};
Element.prototype.scrollTo = () => {};
