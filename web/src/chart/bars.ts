// Grouped bars: a group per category, a bar per series, with intervals and promised limits.

import type { Unit } from '../document';
import { quantity, tick } from '../format';
import type { Theme } from '../theme';
import type { Drawing, Entry } from './panel';
import {
  colorOf,
  dashOf,
  logBounds,
  logarithmic,
  told,
  tooltip,
  upTo,
  valueAxis,
  xAxis,
  type Option,
} from './parts';

export interface Bar {
  value: number;
  /** Bounds of the 95 % confidence interval, if known. */
  between: [number, number] | null;
  /** The promised limit. */
  limit?: number | null;
  /** Additional text of the tooltip. */
  note?: string;
  /** Whether the value is predicted instead of measured. */
  predicted?: boolean;
}

export interface Groups {
  title: string;
  unit: Unit;
  /** The label that distinguishes the groups. */
  label: string;
  categories: string[];
  /** Bars by category; `null` without a value. */
  series: { name: string; bars: (Bar | null)[] }[];
  scale: 'linear' | 'logarithmic';
}

/** Name of promised limits in the legend. */
const PROMISED = 'promised';
/** Share of a group's width that its bars fill. */
const FILLED = 0.84;

export function groupedBars(groups: Groups): Drawing {
  const { unit, categories, series } = groups;
  const bars = series.flatMap((each) => each.bars.flatMap((bar) => bar ?? []));
  const limits = bars.flatMap((bar) => bar.limit ?? []);
  const values = [...bars.flatMap((bar) => [bar.value, ...(bar.between ?? [])]), ...limits];
  const most = Math.max(0, ...values);
  const legend: Entry[] = series.map((each, index) => ({
    name: each.name,
    color: index,
    dash: dashOf(0),
  }));
  const promised: Entry[] =
    limits.length > 0 ? [{ name: PROMISED, color: 7, dash: dashOf(1) }] : [];
  const isLog = groups.scale === 'logarithmic' && values.some((value) => value > 0);
  const floor = isLog ? logBounds(values).min : 0;
  return {
    summary: series
      .map(
        (each) =>
          `${each.name}: ${each.bars
            .flatMap((bar, index) => (bar ? [`${categories[index]} ${said(bar, unit)}`] : []))
            .join(', ')}.`,
      )
      .join(' '),
    legend: [...legend, ...promised],
    height: 340,
    option: (theme, hidden) => {
      const shown = series.filter((each) => !hidden.has(each.name));
      return {
        grid: { left: 76, right: 20, top: 20, bottom: 62 },
        tooltip: tooltip(theme, (hits) => {
          const category = hits[0]?.value[0] ?? 0;
          const lines = hits.flatMap((hit) => {
            const bar = series.find((each) => each.name === hit.seriesName)?.bars[category];
            return bar ? [{ color: hit.color, name: hit.seriesName, value: said(bar, unit) }] : [];
          });
          return told(categories[category] ?? '', lines);
        }),
        xAxis: {
          ...xAxis(theme, groups.label, { type: 'category', data: categories, nameGap: 42 }),
          axisLabel: names(theme, groups, limits.length > 0),
        },
        yAxis: valueAxis(theme, '', unit, isLog ? logarithmic(values) : upTo(unit, most)),
        series: shown.map((each, index) =>
          drawn(
            theme,
            { ...each, color: colorOf(theme, series.indexOf(each)) },
            { index, count: shown.length, floor, limits: !hidden.has(PROMISED) },
          ),
        ),
      };
    },
    table: () => ({
      caption: groups.title,
      head: [groups.label, ...series.map((each) => each.name)],
      rows: categories.map((name, index) => [
        name,
        ...series.map((each) => (each.bars[index] ? said(each.bars[index], unit) : '')),
      ]),
    }),
  };
}

/** Labels below the groups: the name, and the promised limit that all bars of the group share. */
function names(theme: Theme, { categories, series, unit }: Groups, withLimits: boolean): Option {
  const promised = (index: number) => [
    ...new Set(series.flatMap((each) => each.bars[index]?.limit ?? [])),
  ];
  const second = categories.map((_, index) => {
    const [limit, ...others] = promised(index);
    return limit === undefined || others.length > 0 ? '' : `promised ${tick(limit, unit)}`;
  });
  const room = Math.max(
    ...categories.map((name, index) => Math.max(name.length, second[index]?.length ?? 0)),
  );
  // Labels that do not fit side by side are rotated.
  const turned = room * categories.length > 90;
  return {
    color: theme.text,
    interval: 0,
    lineHeight: 16,
    verticalAlign: turned ? 'middle' : 'top',
    rotate: turned ? 30 : 0,
    formatter: (name: string, index: number) =>
      withLimits && !turned && second[index] ? `${name}\n${second[index]}` : name,
  };
}

/** Formats a bar with its interval, limit and note. */
function said(bar: Bar, unit: Unit): string {
  const between = bar.between
    ? ` (${quantity(bar.between[0], unit)} to ${quantity(bar.between[1], unit)})`
    : '';
  const limit =
    bar.limit === undefined || bar.limit === null ? '' : `, ${quantity(bar.limit, unit)} promised`;
  return `${quantity(bar.value, unit)}${between}${
    bar.predicted ? ' (predicted)' : ''
  }${limit}${bar.note ? `, ${bar.note}` : ''}`;
}

interface Place {
  index: number;
  count: number;
  /** Value at the base of the bars. */
  floor: number;
  limits: boolean;
}

interface Api {
  coord(point: number[]): [number, number];
  size(of: number[]): [number, number];
}

/** The series that has one bar in each group. */
function drawn(
  theme: Theme,
  { name, bars, color }: { name: string; bars: (Bar | null)[]; color: string },
  place: Place,
): Option {
  const known = bars.flatMap((bar, category) => (bar ? [{ bar, category }] : []));
  return {
    type: 'custom',
    name,
    color,
    itemStyle: { color },
    encode: { x: 0, y: 1 },
    data: known.map(({ bar, category }) => [category, bar.value]),
    renderItem: ({ dataIndex }: { dataIndex: number }, api: Api) => {
      const found = known[dataIndex];
      if (!found) return null;
      const { bar, category } = found;
      const width = (api.size([1, 0])[0] * FILLED) / place.count;
      const middle =
        api.coord([category, place.floor])[0] + (place.index - (place.count - 1) / 2) * width;
      const at = (value: number) => api.coord([category, Math.max(value, place.floor)])[1];
      const across = (y: number, half: number, stroke: string, lineWidth: number) => ({
        type: 'line',
        shape: { x1: middle - half, y1: y, x2: middle + half, y2: y },
        style: { stroke, lineWidth },
      });
      const inner = Math.max(1, width - Math.min(3, 0.15 * width));
      const children: Option[] = [
        {
          type: 'rect',
          shape: {
            x: middle - inner / 2,
            y: at(bar.value),
            width: inner,
            height: Math.max(1, at(place.floor) - at(bar.value)),
          },
          style: bar.predicted
            ? { fill: theme.background, stroke: color, lineWidth: 1.5, lineDash: [3, 3] }
            : { fill: color },
        },
      ];
      if (bar.between) {
        const [low, high] = bar.between.map(at) as [number, number];
        const cap = Math.min(4, width / 4);
        children.push(across(low, cap, theme.text, 1.2), across(high, cap, theme.text, 1.2), {
          type: 'line',
          shape: { x1: middle, y1: low, x2: middle, y2: high },
          style: { stroke: theme.text, lineWidth: 1.2 },
        });
      }
      if (place.limits && bar.limit !== undefined && bar.limit !== null) {
        // An outline in the background colour keeps the limit visible on any bar.
        children.push(
          across(at(bar.limit), width / 2, theme.background, 5),
          across(at(bar.limit), width / 2, theme.text, 2),
        );
      }
      return { type: 'group', children };
    },
  };
}
