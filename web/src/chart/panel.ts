// A chart with its title, legend, tooltip, keyboard control, table and download.

import { add, csv, folded, h, save, table, type Table } from '../dom';
import { isPrinting, onThemeChange, theme } from '../theme';
import { lowered, seriesOf, type Entry, type Plot, type Stop } from './plot';
import { element, write } from './elements';
import { drawPlot, expectedHeight, type Drawn } from './svg';
import { capped, textWidth, wrapped } from './text';

/** The current content of a chart. */
export interface Drawing {
  /** One sentence that describes the chart for screen readers. */
  summary: string;
  plot: Plot;
  /** Where pointer and keyboard stop, from left to right. */
  stops: Stop[];
  table: () => Table;
  /** Text below the chart: rows that it leaves out, or what its marks mean. */
  note?: string;
}

export interface Spec {
  id: string;
  title: string;
  hint?: string;
  controls?: HTMLElement[];
  draw: () => Drawing;
}

const panels = new Set<Panel>();
const NEAR = '600px';
/** Charts that a large screen shows when the page opens. */
const FIRST = 2;
/** Width of saved charts in pixels: as wide as a slide or a column of text needs. */
const SAVED_PX = 880;
/** Distance of the lines of a note in saved charts. */
const NOTE_LINE_PX = 16;
/** Width of charts before the page has a layout. */
const UNKNOWN_PX = 600;

/** Draws a chart when it scrolls near, so that a report with many charts opens quickly. */
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const panel of panels) if (panel.element === entry.target) panel.show();
    }
  },
  { rootMargin: NEAR },
);

onThemeChange(() => panels.forEach((panel) => panel.redraw()));

/** Draws all charts that are not folded away, for printing. */
export function showAll(): void {
  panels.forEach((panel) => panel.show());
}

/** Draws the first charts at once, without waiting for the page to be laid out and observed. */
export function showFirst(): void {
  const first = [...panels].slice(0, FIRST);
  // All widths are read before the first change: each change makes the next layout anew.
  const widths = first.map((panel) => panel.width());
  first.forEach((panel, index) => panel.show(widths[index]));
}

/** The source of a saved chart: title of the report, host, device, kernel and date. */
function provenance(): string[] {
  const about = document.querySelector('header p')?.textContent ?? '';
  return [document.title, about].filter((words) => words !== '');
}

export class Panel {
  readonly element: HTMLElement;
  private readonly canvas: HTMLElement;
  private readonly legend: HTMLElement;
  private readonly tip: HTMLElement;
  private readonly behind: HTMLElement;
  private readonly spoken: HTMLElement;
  private readonly note: HTMLElement;
  private readonly hidden = new Set<string>();
  private drawing: Drawing;
  private drawn: Drawn | undefined;
  private marker: SVGElement | undefined;
  private stop = -1;

  constructor(private readonly spec: Spec) {
    this.drawing = spec.draw();
    this.canvas = h('div', {
      class: 'canvas',
      tabindex: 0,
      role: 'img',
      'aria-roledescription': 'chart',
      keydown: (event) => this.key(event as KeyboardEvent),
      pointermove: (event) => this.point(event as PointerEvent),
      pointerleave: () => this.select(-1),
      blur: () => this.select(-1),
    });
    this.tip = h('div', { class: 'tooltip', hidden: true });
    this.legend = h('div', {
      class: 'legend',
      role: 'group',
      'aria-label': `Shown in: ${spec.title}`,
    });
    this.behind = h('div', { class: 'behind' });
    this.spoken = h('p', { class: 'unseen', 'aria-live': 'polite' });
    this.note = h('p', { class: 'note' });
    const button = (text: string, click: () => void) =>
      h('button', { type: 'button', 'aria-label': `${text}: ${spec.title}`, click }, text);
    const tools = h('div', { class: 'tools' });
    add(
      tools,
      ...(spec.controls ?? []),
      button('PNG', () => void this.savePng()),
      button('SVG', () => this.saveSvg()),
      button('CSV', () => this.saveCsv()),
    );
    const caption = h(
      'figcaption',
      {},
      h('h3', {}, spec.title),
      spec.hint ? h('p', {}, spec.hint) : null,
    );
    this.element = h(
      'figure',
      { class: 'panel', id: spec.id },
      h('div', { class: 'top' }, caption, tools),
      this.legend,
      h('div', { class: 'stage' }, this.canvas, this.tip),
      this.spoken,
      this.note,
      this.behind,
    );
    panels.add(this);
    this.around();
    watcher.observe(this.element);
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  /** Draws the chart anew after the reader has changed a selection. */
  update(): void {
    this.drawing = this.spec.draw();
    this.around();
    this.redraw();
  }

  /** Releases the chart of a panel that left the page. */
  remove(): void {
    panels.delete(this);
    watcher.unobserve(this.element);
    this.drawn = undefined;
  }

  show(width?: number): void {
    if (!this.drawn) this.draw(width);
    else this.resize();
  }

  width(): number {
    return this.canvas.clientWidth;
  }

  redraw(): void {
    if (this.drawn) this.draw();
  }

  private draw(width = this.width()): void {
    const plot = isPrinting() ? lowered(this.drawing.plot) : this.drawing.plot;
    this.drawn = drawPlot(plot, width || UNKNOWN_PX, theme(), this.hidden);
    this.stop = -1;
    this.tip.hidden = true;
    this.canvas.replaceChildren(this.drawn.svg);
    this.showNote(this.drawn.unnamed);
    this.canvas.style.minHeight = `${this.drawn.height}px`;
    this.legend.hidden = this.drawn.labelled || seriesOf(this.drawing.plot).length < 2;
    for (const line of this.legend.querySelectorAll<SVGElement>('path'))
      line.setAttribute('stroke', theme().colors[Number(line.dataset['slot'])] ?? theme().text);
  }

  private resize(): void {
    const width = this.width();
    if (this.drawn && width > 0 && width !== this.drawn.width) this.draw(width);
  }

  /** Updates the label, legend and table around the chart. */
  private around(): void {
    const series = seriesOf(this.drawing.plot);
    // Reserved, so that the page does not grow while it scrolls.
    if (!this.drawn) this.canvas.style.minHeight = `${expectedHeight(this.drawing.plot)}px`;
    this.canvas.setAttribute(
      'aria-label',
      `${this.spec.title}. ${this.drawing.summary} Arrow keys step through it; a table follows.`,
    );
    this.legend.replaceChildren(
      ...(series.length > 1 ? series.map((each) => this.entryOf(each)) : []),
    );
    this.legend.hidden = series.length < 2;
    this.showNote([]);
    const wasOpen = this.behind.querySelector('details')?.open ?? false;
    this.behind.replaceChildren(
      folded('Table of this chart', () => table(this.drawing.table()), wasOpen),
    );
  }

  private showNote(unnamed: string[]): void {
    this.note.textContent = this.noteOn(unnamed);
    this.note.hidden = this.note.textContent === '';
  }

  /** The note, with the names of limits that have no room in the chart. */
  private noteOn(unnamed: string[]): string {
    const { note = '' } = this.drawing;
    const others = unnamed.map((name) => `${name}: drawn without a name`).join('; ');
    const between = note === '' || others === '' ? '' : note.endsWith('.') ? ' ' : '; ';
    return note + between + others;
  }

  /** One entry of the legend: a button that hides and shows the series. */
  private entryOf(series: Entry): HTMLElement {
    const color = theme().colors[series.slot % theme().colors.length] ?? '';
    const line = element('path', {
      d: 'M0 5h24',
      stroke: color,
      'stroke-width': 3,
      'stroke-dasharray': series.dash,
      'stroke-opacity': series.opacity,
      'data-slot': series.slot % theme().colors.length,
    });
    const swatch = element('svg', { width: 24, height: 10, 'aria-hidden': 'true' }, line);
    const button = h(
      'button',
      { type: 'button', 'aria-pressed': this.hidden.has(series.name) ? 'false' : 'true' },
      swatch,
      series.name,
    );
    button.addEventListener('click', () => {
      if (!this.hidden.delete(series.name)) this.hidden.add(series.name);
      button.setAttribute('aria-pressed', this.hidden.has(series.name) ? 'false' : 'true');
      this.redraw();
    });
    return button;
  }

  /** Arrow keys step through the stops, which are announced. */
  private key(event: KeyboardEvent): void {
    if (event.key === 'Escape') {
      this.select(-1);
      return;
    }
    const last = this.drawing.stops.length - 1;
    const steps: { [key: string]: number } = {
      ArrowRight: this.stop + 1,
      ArrowLeft: this.stop - 1,
      PageDown: this.stop + 10,
      PageUp: this.stop - 10,
      Home: 0,
      End: last,
    };
    const next = steps[event.key];
    if (next === undefined || last < 0) return;
    event.preventDefault();
    this.show();
    this.select(Math.min(last, Math.max(0, next)));
    this.spoken.textContent = [...this.tip.children]
      .map((part) =>
        [...part.childNodes]
          .map((node) => node.textContent)
          .join(' ')
          .trim(),
      )
      .join('; ');
  }

  /** Selects the stop that is nearest to the pointer. */
  private point(event: PointerEvent): void {
    const { drawn } = this;
    if (!drawn) return;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [nearest, least] = [-1, Infinity];
    this.drawing.stops.forEach((stop, index) => {
      const across = stop.y !== undefined && stop.x === 0 ? 0 : drawn.x(stop.x) - x;
      const distance = Math.hypot(across, stop.y === undefined ? 0 : drawn.y(stop.y) - y);
      if (distance < least) [nearest, least] = [index, distance];
    });
    this.select(nearest);
  }

  /** Shows the tooltip of a stop; -1 hides it. */
  private select(index: number): void {
    if (index === this.stop) return;
    this.stop = index;
    this.marker?.remove();
    const { drawn } = this;
    const stop = this.drawing.stops[index];
    this.tip.hidden = stop === undefined || drawn === undefined;
    if (!stop || !drawn) return;
    const lines = stop.lines.filter((line) => !this.hidden.has(line.name));
    this.tip.replaceChildren(
      h('div', { class: 'tip-head' }, stop.head),
      ...lines.map(({ slot, name, value }) => {
        const dot = h('i', {});
        if (slot !== null)
          dot.style.background = theme().colors[slot % theme().colors.length] ?? '';
        return h('div', { class: 'tip' }, dot, h('span', {}, name), h('b', {}, value));
      }),
    );
    const x = drawn.x(stop.x);
    if (stop.y === undefined) {
      this.marker = element('path', {
        d: `M${x} ${drawn.top}V${drawn.bottom}`,
        stroke: theme().muted,
        'stroke-width': 1,
      });
      drawn.svg.append(this.marker);
    }
    const most = drawn.width - this.tip.offsetWidth - 4;
    const beside = x + 14 > most ? x - this.tip.offsetWidth - 14 : x + 14;
    const top = stop.y === undefined ? drawn.top + 8 : drawn.y(stop.y) + 14;
    this.tip.style.left = `${Math.max(0, Math.min(most, beside))}px`;
    this.tip.style.top = `${top}px`;
  }

  /** The chart with title, provenance, legend and note, in the colours of the page. */
  private svg(): Drawn {
    const look = theme();
    const title = write(12, 22, capped(this.spec.title, SAVED_PX - 24), {
      fill: look.text,
      'font-size': 15,
      'font-weight': 600,
    });
    const below = provenance().map((words, index) =>
      write(12, 40 + 16 * index, capped(words, SAVED_PX - 24), { fill: look.muted }),
    );
    const room = 34 + 16 * below.length;
    const series = seriesOf(this.drawing.plot).filter(({ name }) => !this.hidden.has(name));
    const entries: Node[] = [];
    let [x, y] = [12, room + 8];
    for (const { name, slot, dash, opacity } of series) {
      const text = capped(name, SAVED_PX - 80);
      if (x > 12 && x + textWidth(text) + 50 > SAVED_PX) [x, y] = [12, y + 18];
      entries.push(
        element('path', {
          d: `M${x} ${y - 4}h24`,
          stroke: look.colors[slot % look.colors.length],
          'stroke-width': 3,
          'stroke-dasharray': dash,
          'stroke-opacity': opacity,
        }),
        write(x + 30, y, text, { fill: look.text }),
      );
      x += textWidth(text) + 50;
    }
    const plot = { ...this.drawing.plot };
    const labelled = drawPlot(plot, SAVED_PX, look, this.hidden).labelled || series.length < 2;
    const drawn = drawPlot(plot, SAVED_PX, look, this.hidden, labelled ? room : y + 10);
    const sheet = element('rect', { width: '100%', height: '100%', fill: look.background });
    drawn.svg.prepend(sheet, title, ...below, ...(labelled ? [] : entries));
    const lines = wrapped(this.noteOn(drawn.unnamed), SAVED_PX - 24);
    lines.forEach((words, index) => {
      const y = drawn.height + NOTE_LINE_PX * (index + 1) - 4;
      drawn.svg.append(write(12, y, words, { fill: look.muted }));
    });
    const height = drawn.height + NOTE_LINE_PX * lines.length + (lines.length > 0 ? 4 : 0);
    drawn.svg.setAttribute('height', String(height));
    drawn.svg.setAttribute('viewBox', `0 0 ${drawn.width} ${height}`);
    return { ...drawn, height };
  }

  private file(extension: string): string {
    return (
      `${document.title}-${this.spec.id}`
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .slice(-80) + `.${extension}`
    );
  }

  private saveSvg(): void {
    const text = new XMLSerializer().serializeToString(this.svg().svg);
    save(this.file('svg'), new Blob([text], { type: 'image/svg+xml' }));
  }

  private async savePng(): Promise<void> {
    const { svg, width, height } = this.svg();
    const image = new Image(width, height);
    const text = new XMLSerializer().serializeToString(svg);
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const sheet = h('canvas', { width: width * 2, height: height * 2 });
    sheet.getContext('2d')?.drawImage(image, 0, 0, width * 2, height * 2);
    sheet.toBlob((blob) => blob && save(this.file('png'), blob), 'image/png');
  }

  private saveCsv(): void {
    save(this.file('csv'), new Blob([csv(this.drawing.table())], { type: 'text/csv' }));
  }
}

/** Charts side by side. */
export function grid(panels: Panel[]): HTMLElement {
  return h('div', { class: 'grid charts' }, ...panels.map((panel) => panel.element));
}
