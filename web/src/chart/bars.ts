// Grouped bars: a group per category, a bar per series, with intervals and promised limits.

import type { Unit } from '../document';
import { quantity, tick } from '../format';
import type { Drawing } from './panel';
import { withBounds } from './parts';
import type { Bars } from './plot';
import { linear, logarithmic, names } from './scales';

export interface GroupBar {
  value: number;
  /** Bounds of the 95 % confidence interval, if known. */
  between: [number, number] | null;
  /** The promised limit. */
  limit?: number | null;
  /** Text of the value with its interval and the mark of a prediction, if it is known. */
  text?: string;
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
  series: { name: string; bars: (GroupBar | null)[] }[];
  scale: 'linear' | 'logarithmic';
  /** Highest value of the charts side by side, if they have one scale. */
  most?: number;
}

export function groupedBars(groups: Groups): Drawing {
  const { unit, categories, series } = groups;
  const all = series.flatMap((each) => each.bars.flatMap((bar) => bar ?? []));
  const limits = all.flatMap((bar) => bar.limit ?? []);
  const values = [...all.flatMap((bar) => [bar.value, ...(bar.between ?? [])]), ...limits];
  const isLog = groups.scale === 'logarithmic' && values.some((value) => value > 0);
  const marks = series.map((each, slot): Bars => ({
    kind: 'bars',
    name: each.name,
    slot,
    lying: false,
    bars: each.bars.flatMap((bar, at) =>
      bar
        ? [
            {
              at,
              value: bar.value,
              between: bar.between,
              limit: bar.limit ?? null,
              predicted: bar.predicted ?? false,
            },
          ]
        : [],
    ),
  }));
  return {
    summary: series
      .map(
        (each) =>
          `${each.name}: ${each.bars
            .flatMap((bar, index) => (bar ? [`${categories[index]} ${said(bar, unit)}`] : []))
            .join(', ')}.`,
      )
      .join(' '),
    plot: {
      x: {
        title: withLimit(groups, limits.length > 0),
        scale: names(categories),
        lines: false,
      },
      strips: [
        {
          title: '',
          height: 250,
          y: {
            title: '',
            scale: isLog
              ? logarithmic(values, unit)
              : linear(unit, Math.max(groups.most ?? 0, ...values)),
            lines: true,
          },
          marks,
        },
      ],
      labels: false,
    },
    stops: categories.map((head, x) => ({
      x,
      head,
      lines: series.flatMap((each, slot) => {
        const bar = each.bars[x];
        return bar ? [{ slot, name: each.name, value: said(bar, unit) }] : [];
      }),
    })),
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

/** Title of the axis. It names the promised limit if all bars share it. */
function withLimit({ label, series, unit }: Groups, any: boolean): string {
  if (!any) return label;
  const limits = new Set(series.flatMap((each) => each.bars.flatMap((bar) => bar?.limit ?? [])));
  const [only] = limits;
  return limits.size === 1 && only !== undefined
    ? `${label} (line: ${tick(only, unit)} promised)`
    : `${label} (lines: promised)`;
}

/** Formats a bar with its interval, limit and note. */
function said(bar: GroupBar, unit: Unit): string {
  const limit =
    bar.limit === undefined || bar.limit === null ? '' : `, ${quantity(bar.limit, unit)} promised`;
  const predicted = bar.predicted ? ' (predicted)' : '';
  const text = bar.text ?? `${withBounds(bar.value, bar.between, unit)}${predicted}`;
  return `${text}${limit}${bar.note ? `, ${bar.note}` : ''}`;
}
