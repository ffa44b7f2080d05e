// Common parts of all charts.

import type { Rate, Unit } from '../document';
import { quantity, tick } from '../format';
import type { Theme } from '../theme';

/** An ECharts option. With `strict`, the library's own type is a burden and finds no errors. */
export type Option = { [name: string]: unknown };

/** Line styles that distinguish series without colour. */
const DASHES: (string | number[])[] = ['solid', [7, 4], [2, 3], [9, 3, 2, 3]];
/** Name of the series that draw intervals and bands instead of points. */
export const CONFIDENCE = '95 % confidence';

export const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond'];

export function colorOf(theme: Theme, index: number): string {
  return theme.colors[index % theme.colors.length] ?? theme.text;
}

export function dashOf(index: number): string | number[] {
  return DASHES[Math.floor(index / 8 + index) % DASHES.length] ?? 'solid';
}

export function symbolOf(index: number): string {
  return SYMBOLS[index % SYMBOLS.length] ?? 'circle';
}

export function base(theme: Theme): Option {
  return {
    animation: false,
    backgroundColor: 'transparent',
    textStyle: { fontFamily: 'system-ui, sans-serif', fontSize: 12, color: theme.text },
    legend: { show: false },
  };
}

export function tooltip(
  theme: Theme,
  formatter: (hit: Hit[]) => string,
  trigger: 'axis' | 'item' = 'axis',
): Option {
  return {
    trigger,
    confine: true,
    className: 'tooltip',
    backgroundColor: theme.background,
    borderColor: theme.line,
    textStyle: { color: theme.text, fontSize: 12 },
    axisPointer: { type: 'line', lineStyle: { color: theme.muted }, label: { show: false } },
    formatter: (hits: Hit | Hit[]) => formatter(Array.isArray(hits) ? hits : [hits]),
  };
}

/** A point under the pointer. */
export interface Hit {
  seriesName: string;
  seriesIndex: number;
  dataIndex: number;
  value: number[];
  color: string;
  name: string;
}

/** Text of a tooltip. Names come from results, so they are escaped. */
export function told(
  head: string,
  lines: { color: string; name: string; value: string }[],
): string {
  const rows = lines.map(
    (line) =>
      `<div class="tip"><i style="background:${safe(line.color)}"></i><span>${safe(
        line.name,
      )}</span><b>${safe(line.value)}</b></div>`,
  );
  return `<div class="tip-head">${safe(head)}</div>${rows.join('')}`;
}

function safe(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Step of an axis of bytes: 1, 2 or 5 binary units, or half of that. ECharts uses decimals. */
export function byteStep(most: number): number {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(most, 1)) / 10));
  const rough = most / 4 / unit;
  if (rough < 0.8) return unit * 2 ** Math.round(Math.log2(rough));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough * 0.8) ?? 10;
  return step * power * unit;
}

/** A linear axis from zero to at least `most`. */
export function linear(unit: Unit, most: number): Option {
  // A percentage is at most 100.
  if (unit === 'percent' && most > 80) return { interval: 50, max: 100 };
  if (unit !== 'bytes_per_s' || !(most > 0)) return {};
  const step = byteStep(most);
  return { interval: step, max: step * Math.ceil((most * 1.01) / step) };
}

/** Like `linear` for all units; ECharts would not extend the axis to limits, which are no data. */
export function upTo(unit: Unit, most: number): Option {
  if (unit === 'bytes_per_s' || !(most > 0)) return linear(unit, most);
  const power = 10 ** Math.floor(Math.log10(most / 4));
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * power >= (most / 4) * 0.8) ?? 10) * power;
  return { interval: step, max: step * Math.ceil((most * 1.01) / step) };
}

/** A logarithmic axis around these values with labels at round numbers. */
export function logarithmic(values: number[]): Option {
  const { min, max } = logBounds(values);
  const powers = Array.from(
    { length: Math.ceil(Math.log10(max / min)) + 2 },
    (_, index) => 10 ** (Math.floor(Math.log10(min) + 1e-9) + index),
  );
  const steps = max / min > 300 ? [1] : [1, 2, 5];
  const marks = powers
    .flatMap((power) => steps.map((step) => step * power))
    .filter((mark) => mark >= min * 0.999 && mark <= max * 1.001);
  return { type: 'log', min, max, marks };
}

export function valueAxis(
  theme: Theme,
  name: string,
  unit: Unit,
  { marks, ...more }: Option = {},
): Option {
  return {
    type: 'value',
    name,
    nameLocation: 'end',
    nameTextStyle: { color: theme.muted, align: 'left' },
    min: 0,
    axisLabel: {
      color: theme.muted,
      formatter: (value: number) => tick(value, unit),
      ...(marks ? { customValues: marks } : {}),
    },
    axisTick: { show: false },
    axisLine: { show: false },
    splitLine: { lineStyle: { color: theme.faint } },
    ...more,
  };
}

export function xAxis(theme: Theme, name: string, more: Option = {}): Option {
  return {
    type: 'value',
    name,
    nameLocation: 'middle',
    nameGap: 28,
    nameTextStyle: { color: theme.muted },
    axisLabel: { color: theme.muted, hideOverlap: true },
    axisLine: { lineStyle: { color: theme.line } },
    axisTick: { lineStyle: { color: theme.line } },
    splitLine: { show: false },
    ...more,
  };
}

/** Positions of the values of an axis: their numbers, or their indexes. */
export function placesOf(values: string[]): { numbers: boolean; at: (value: string) => number } {
  const numbers = values.every((value) => /^[1-9]\d*$/.test(value));
  return { numbers, at: (value) => (numbers ? Number(value) : values.indexOf(value)) };
}

/** The horizontal axis of a sweep. */
export function overAxis(theme: Theme, title: string, values: string[]): Option {
  if (!placesOf(values).numbers)
    return xAxis(theme, title, { type: 'category', data: values, boundaryGap: false });
  const numbers = values.map(Number);
  return xAxis(theme, title, {
    type: 'log',
    logBase: 2,
    min: Math.min(...numbers),
    max: Math.max(...numbers),
  });
}

/** A band between two lines: data are `[x, low, high]`. The first point draws all of the band. */
export function band(color: string, data: number[][], opacity = 0.18): Option {
  return {
    type: 'custom',
    name: CONFIDENCE,
    silent: true,
    z: 1,
    tooltip: { show: false },
    encode: { x: 0, y: [1, 2] },
    data,
    renderItem: (
      { dataIndex }: { dataIndex: number },
      api: { coord(point: number[]): [number, number] },
    ) => {
      if (dataIndex > 0 || data.length < 2) return null;
      const line = (end: number) =>
        data.map((point) => api.coord([point[0] ?? 0, point[end] ?? 0]));
      return {
        type: 'polygon',
        shape: { points: [...line(2), ...line(1).reverse()] },
        style: { fill: color, opacity },
      };
    },
  };
}

/** Bounds of a logarithmic axis around the values: powers of ten, or halves of them. */
export function logBounds(values: number[]): { min: number; max: number } {
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) return { min: 1, max: 10 };
  const low = Math.min(...positive);
  const high = Math.max(...positive);
  const nice = (value: number, up: boolean) => {
    const power = 10 ** Math.floor(Math.log10(value));
    const steps = [1, 2, 5, 10].map((step) => step * power);
    return up
      ? (steps.find((step) => step >= value * 1.02) ?? 10 * power)
      : ([...steps].reverse().find((step) => step <= value * 0.98) ?? power / 2);
  };
  return { min: nice(low, false), max: nice(high, true) };
}

export function withError(rate: Rate, unit: Unit): string {
  const mean = quantity(rate.mean, unit);
  return rate.error === null ? mean : `${mean} ± ${quantity(rate.error, unit)}`;
}

/** Width in pixels of names beside horizontal bars: at most a third of a narrow screen. */
export function roomForNames(names: string[]): number {
  const longest = Math.max(0, ...names.map((name) => name.length));
  return Math.min(220, 16 + 7 * longest, Math.max(96, document.documentElement.clientWidth * 0.34));
}

/** Shortens a name in the middle to a width in pixels, as names mostly differ at the end. */
export function elided(name: string, room: number): string {
  const most = Math.floor((room - 14) / 6.6);
  if (name.length <= most) return name;
  const head = Math.floor((most - 1) / 3);
  return `${name.slice(0, head)}…${name.slice(name.length - (most - 1 - head))}`;
}

/** Confidence intervals: data are `[x, low, high]`, or `[low, high, y]` for horizontal bars. */
export function whiskers(
  color: string,
  data: number[][],
  { lying = false, cap = 4, labels = [] as string[] } = {},
): Option {
  return {
    type: 'custom',
    name: CONFIDENCE,
    silent: true,
    z: 5,
    tooltip: { show: false },
    encode: lying ? { x: [0, 1], y: 2 } : { x: 0, y: [1, 2] },
    data,
    renderItem: (
      { dataIndex }: { dataIndex: number },
      api: { value(at: number): number; coord(point: number[]): [number, number] },
    ) => {
      const [a, b, c] = [api.value(0), api.value(1), api.value(2)];
      const [from, to] = lying
        ? [api.coord([a, c]), api.coord([b, c])]
        : [api.coord([a, b]), api.coord([a, c])];
      const line = (x1: number, y1: number, x2: number, y2: number) => ({
        type: 'line',
        shape: { x1, y1, x2, y2 },
        style: { stroke: color, lineWidth: 1.5 },
      });
      const [dx, dy] = lying ? [0, cap] : [cap, 0];
      const lines = [
        line(from[0], from[1], to[0], to[1]),
        line(from[0] - dx, from[1] - dy, from[0] + dx, from[1] + dy),
        line(to[0] - dx, to[1] - dy, to[0] + dx, to[1] + dy),
      ];
      const text = labels[dataIndex];
      const label = {
        type: 'text',
        x: to[0] + 8,
        y: to[1],
        style: { text, fill: color, fontSize: 12, verticalAlign: 'middle' },
      };
      return {
        type: 'group',
        // Without a known error, only the label is drawn.
        children: [
          ...(from[0] === to[0] && from[1] === to[1] ? [] : lines),
          ...(text === undefined ? [] : [label]),
        ],
      };
    },
  };
}
