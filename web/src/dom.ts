// HTML elements without a framework.

import { visible } from './clean';

type Child = Node | string | number | null | undefined | false;

type Attributes = {
  [name: string]: string | number | boolean | null | undefined | ((event: Event) => void);
};

/** Creates an element: a function adds a listener, `true` a bare attribute, `false`/`null` none. */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(key, String(value));
  }
  add(element, ...children);
  return element;
}

export function add(parent: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(typeof child === 'number' ? String(child) : child);
  }
}

/** Creates a `<details>` element whose content is created when it is first opened. */
export function folded(summary: Child, content: () => Node, open = false): HTMLDetailsElement {
  const details = h('details', { open }, h('summary', {}, summary));
  const fill = () => {
    if (details.open && details.childElementCount === 1) details.append(content());
  };
  details.addEventListener('toggle', fill);
  fill();
  return details;
}

/** Text that a spreadsheet reads as a formula. */
const FORMULA = /^\s*[=+\-@＝＋－＠]/;

export interface Table {
  caption: string;
  head: string[];
  /** The first cell of each row is its heading. */
  rows: (string | number)[][];
}

/** Creates a table that scrolls sideways on its own, also with the keyboard. */
export function table(data: Table): HTMLElement {
  const head = h('tr', {}, ...data.head.map((title) => h('th', { scope: 'col' }, title)));
  const rows = data.rows.map((row) =>
    h(
      'tr',
      {},
      ...row.map((cell, index) =>
        index === 0 ? h('th', { scope: 'row' }, cell) : h('td', {}, cell),
      ),
    ),
  );
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': data.caption },
    h('table', {}, h('caption', {}, data.caption), h('thead', {}, head), h('tbody', {}, ...rows)),
  );
}

/** The table as CSV. Text from results is escaped: no formulas, no control sequences. */
export function csv(data: Table): string {
  const cell = (value: string | number) => {
    const seen = visible(String(value));
    const text = FORMULA.test(seen) && Number.isNaN(Number(seen)) ? `'${seen}` : seen;
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [data.head, ...data.rows].map((row) => row.map(cell).join(',')).join('\n') + '\n';
}

/** Downloads a file. */
export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = h('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
