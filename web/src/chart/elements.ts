// Elements of SVG, and the place of a strip in a chart.

import type { Theme } from '../theme';

/** Size of texts in pixels. */
export const FONT_PX = 12;
/** Distance between texts that stand side by side or one below the other. */
export const APART_PX = 6;
/** Height of a line of text. */
export const LINE_PX = 15;

export type Attributes = { [name: string]: string | number | null | undefined };

export function element(name: string, attributes: Attributes, ...children: Node[]): SVGElement {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

export function write(x: number, y: number, words: string, attributes: Attributes): SVGElement {
  const made = element('text', { x: round(x), y: round(y), 'font-size': FONT_PX, ...attributes });
  made.textContent = words;
  return made;
}

export const round = (value: number) => Math.round(value * 100) / 100;

export const colorOf = (theme: Theme, slot: number) =>
  theme.colors[slot % theme.colors.length] ?? theme.text;

/** A strip in pixels, and where values lie in it. */
export interface Place {
  theme: Theme;
  left: number;
  right: number;
  top: number;
  bottom: number;
  x: (value: number) => number;
  y: (value: number) => number;
  hidden: Set<string>;
}

export function path(d: string, attributes: Attributes): SVGElement {
  return element('path', { d, fill: 'none', ...attributes });
}
