// A small element builder. Text only ever enters the page as text nodes: nothing here parses HTML.

type Child = Node | string | number | null | undefined | false;

interface Props {
  class?: string;
  title?: string;
  attrs?: Record<string, string | number | boolean | undefined>;
  style?: Record<string, string>;
  on?: Record<string, (event: Event) => void>;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props | string = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  const p = typeof props === 'string' ? { class: props } : props;
  if (p.class) {
    element.className = p.class;
  }
  if (p.title) {
    element.title = p.title;
  }
  for (const [name, value] of Object.entries(p.attrs ?? {})) {
    if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  for (const [name, value] of Object.entries(p.style ?? {})) {
    element.style.setProperty(name, value);
  }
  for (const [name, listener] of Object.entries(p.on ?? {})) {
    element.addEventListener(name, listener);
  }
  append(element, children);
  return element;
}

export function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      parent.append(typeof child === 'number' ? String(child) : child);
    }
  }
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** Change text only when it differs: nothing moves that did not change (and readers stay quiet). */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** A view is drawn at most once per frame, and not at all while nobody can see it. */
export function frameScheduler(draw: () => void): { dirty: () => void; cancel: () => void } {
  let frame = 0;
  return {
    dirty() {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        draw();
      });
    },
    cancel() {
      cancelAnimationFrame(frame);
      frame = 0;
    }
  };
}
