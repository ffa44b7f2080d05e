// A chart with its title, legend, keyboard control, table and download.

import { add, csv, folded, h, save, table, type Table } from '../dom';
import { isPrinting, onThemeChange, theme, type Theme } from '../theme';
import { init, type ECharts } from './echarts';
import { base, CONFIDENCE, type Option } from './parts';

/** The current content of a chart. */
export interface Drawing {
  /** One sentence that describes the chart for screen readers. */
  summary: string;
  /** Names and line styles, in the order of the legend. */
  legend: Entry[];
  option: (theme: Theme, hidden: Set<string>) => Option;
  table: () => Table;
  /** Height in pixels. */
  height: number;
}

export interface Entry {
  name: string;
  /** Index in the palette. */
  color: number;
  dash: string | number[];
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

/** Draws all charts for printing. */
export function showAll(): void {
  panels.forEach((panel) => panel.show());
}

export class Panel {
  readonly element: HTMLElement;
  private readonly canvas: HTMLElement;
  private readonly legend: HTMLElement;
  private readonly behind: HTMLElement;
  private readonly spoken: HTMLElement;
  private readonly hidden = new Set<string>();
  private chart: ECharts | undefined;
  private drawing: Drawing;
  private point = -1;

  constructor(private readonly spec: Spec) {
    this.drawing = spec.draw();
    this.canvas = h('div', {
      class: 'canvas',
      tabindex: 0,
      role: 'img',
      'aria-roledescription': 'chart',
      keydown: (event) => this.key(event as KeyboardEvent),
    });
    this.legend = h('div', {
      class: 'legend',
      role: 'group',
      'aria-label': `Shown in: ${spec.title}`,
    });
    this.behind = h('div', { class: 'behind' });
    this.spoken = h('p', { class: 'unseen', 'aria-live': 'polite' });
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
      this.canvas,
      this.spoken,
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
    this.point = -1;
    this.around();
    this.redraw();
  }

  /** Releases the chart of a panel that left the page. */
  remove(): void {
    panels.delete(this);
    watcher.unobserve(this.element);
    this.chart?.dispose();
    this.chart = undefined;
  }

  show(): void {
    if (this.chart) {
      this.resize();
      return;
    }
    this.chart = init(this.canvas, null, { renderer: 'svg' });
    this.redraw();
  }

  redraw(): void {
    for (const swatch of this.legend.querySelectorAll<HTMLElement>('i')) {
      swatch.style.borderTopColor =
        theme().colors[Number(swatch.dataset['color']) % theme().colors.length] ?? '';
    }
    if (!this.chart) return;
    this.chart.resize();
    this.chart.setOption(this.option(theme()), { notMerge: true });
    if (isPrinting()) this.chart.getZr().refreshImmediately();
  }

  private option(look: Theme): Option {
    return { ...base(look), ...this.drawing.option(look, this.hidden) };
  }

  private resize(): void {
    if (this.chart && this.canvas.clientWidth > 0) this.chart.resize();
  }

  /** Updates the label, legend and table around the chart. */
  private around(): void {
    const { summary, legend, height } = this.drawing;
    this.canvas.setAttribute(
      'aria-label',
      `${this.spec.title}. ${summary} Arrow keys step through it; a table follows.`,
    );
    this.canvas.style.height = `${height}px`;
    this.legend.replaceChildren(
      ...(legend.length > 1 ? legend.map((entry) => this.entryOf(entry)) : []),
    );
    const wasOpen = this.behind.querySelector('details')?.open ?? false;
    this.behind.replaceChildren(
      folded('Table of this chart', () => table(this.drawing.table()), wasOpen),
    );
  }

  /** One entry of the legend: a button that hides and shows the series. */
  private entryOf(entry: Entry): HTMLElement {
    const style =
      typeof entry.dash === 'string' ? 'solid' : Number(entry.dash[0]) < 4 ? 'dotted' : 'dashed';
    const swatch = h('i', { style: `border-top-style:${style}`, 'data-color': entry.color });
    const button = h(
      'button',
      { type: 'button', 'aria-pressed': this.hidden.has(entry.name) ? 'false' : 'true' },
      swatch,
      entry.name,
    );
    button.addEventListener('click', () => {
      if (!this.hidden.delete(entry.name)) this.hidden.add(entry.name);
      button.setAttribute('aria-pressed', this.hidden.has(entry.name) ? 'false' : 'true');
      this.redraw();
    });
    return button;
  }

  /** Arrow keys step through the points of the longest line; the tooltip is announced. */
  private key(event: KeyboardEvent): void {
    if (!this.chart) return;
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
    const series = (this.chart.getOption()['series'] ?? []) as { name: string; data: unknown[] }[];
    const lengths = series.map((each) => (each.name === CONFIDENCE ? 0 : each.data.length));
    const last = Math.max(0, ...lengths) - 1;
    if (event.key === 'Escape') {
      this.chart.dispatchAction({ type: 'hideTip' });
      return;
    }
    if (last < 0 || (step === undefined && event.key !== 'Home' && event.key !== 'End')) return;
    event.preventDefault();
    if (event.key === 'Home') this.point = 0;
    else if (event.key === 'End') this.point = last;
    else this.point = Math.min(last, Math.max(0, this.point + (step ?? 0)));
    this.chart.dispatchAction({
      type: 'showTip',
      seriesIndex: lengths.indexOf(last + 1),
      dataIndex: this.point,
    });
    const tip = this.canvas.querySelector<HTMLElement>('.tooltip');
    const parts = tip
      ? [...tip.querySelectorAll('.tip-head, .tip')].map((part) =>
          [...part.childNodes].map((node) => node.textContent).join(' '),
        )
      : [];
    this.spoken.textContent = parts.join('; ');
  }

  /** The chart with title and legend as SVG, in the colours of the page. */
  private svg(): { text: string; width: number; height: number } {
    const look = theme();
    const width = Math.max(720, this.canvas.clientWidth);
    const shown = this.drawing.legend.length > 1 ? this.drawing.legend : [];
    const head =
      44 +
      18 * Math.ceil(shown.reduce((sum, entry) => sum + 44 + entry.name.length * 7, 0) / width);
    const height = this.drawing.height + head;
    const chart = init(null, null, { renderer: 'svg', ssr: true, width, height });
    const option = this.option(look);
    const grids = (Array.isArray(option['grid']) ? option['grid'] : [option['grid']]) as {
      top?: number;
    }[];
    chart.setOption({
      ...option,
      backgroundColor: look.background,
      title: {
        text: this.spec.title,
        left: 12,
        top: 8,
        textStyle: { fontSize: 15, color: look.text },
      },
      legend: {
        show: true,
        top: 34,
        left: 12,
        data: shown.map((entry) => entry.name),
        textStyle: { color: look.text },
        itemWidth: 26,
      },
      grid: grids.map((grid) => ({ ...grid, top: (grid.top ?? 30) + head - 8 })),
    });
    const text = chart.renderToSVGString();
    chart.dispose();
    return { text, width, height };
  }

  private file(extension: string): string {
    return (
      `${document.title}-${this.spec.id}`
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .slice(0, 80) + `.${extension}`
    );
  }

  private saveSvg(): void {
    save(this.file('svg'), new Blob([this.svg().text], { type: 'image/svg+xml' }));
  }

  private async savePng(): Promise<void> {
    const { text, width, height } = this.svg();
    const image = new Image(width, height);
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
