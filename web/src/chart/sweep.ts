// Curves of a sweep over an axis with confidence bands. Predicted points are hollow.

import type { Sweep } from '../document';
import { quantity } from '../format';
import { combinations, has, isOrdered, named, titled, type Measure, type Point } from '../grid';
import type { Drawing } from './panel';
import { groupedBars } from './bars';
import {
  band,
  colorOf,
  dashOf,
  linear,
  logarithmic,
  overAxis,
  placesOf,
  told,
  tooltip,
  valueAxis,
  whiskers,
  withError,
  type Option,
} from './parts';
import type { Theme } from '../theme';

interface Line {
  name: string;
  points: { at: number; mean: number; error: number | null; measured: boolean }[];
}

/** A chart over `axis`: a line per combination of `others`, or bars if the axis is not ordered. */
export function overOne(
  sweep: Sweep,
  points: Point[],
  axis: number,
  others: number[],
  measure: Measure,
): Drawing {
  return isOrdered(sweep.axes[axis])
    ? curves(sweep, points, axis, others, measure)
    : bars(sweep, points, axis, others, measure);
}

function lineName(sweep: Sweep, others: number[], combination: string[], measure: Measure): string {
  if (combination.length === 0) return measure.title;
  return combination.map((value, index) => named(sweep.axes[others[index] ?? 0], value)).join(' ');
}

function bars(
  sweep: Sweep,
  points: Point[],
  axis: number,
  others: number[],
  measure: Measure,
): Drawing {
  const over = sweep.axes[axis];
  const categories = (over?.values ?? []).filter((value) =>
    points.some((point) => point.values[axis] === value),
  );
  const series = combinations(points, others).map((combination) => ({
    name: lineName(sweep, others, combination, measure),
    bars: categories.map((value) => {
      const point = points.find(
        (each) => each.values[axis] === value && has(each, others, combination),
      );
      const rate = point && measure.of(point.cell);
      if (!point || !rate) return null;
      const between: [number, number] | null =
        rate.error === null ? null : [Math.max(0, rate.mean - rate.error), rate.mean + rate.error];
      return { value: rate.mean, between, predicted: point.cell.basis !== 'measured' };
    }),
  }));
  return groupedBars({
    title: `${measure.title} over ${over?.name}`,
    unit: measure.unit,
    label: over ? titled(over) : '',
    categories,
    series,
    scale: 'linear',
  });
}

/** Curves over `axis`, one per combination of `others`. */
function curves(
  sweep: Sweep,
  points: Point[],
  axis: number,
  others: number[],
  measure: Measure,
): Drawing {
  const over = sweep.axes[axis];
  const values = over?.values ?? [];
  const { at, numbers } = placesOf(values);
  const lines: Line[] = combinations(points, others).map((combination) => ({
    name: lineName(sweep, others, combination, measure),
    points: points
      .filter((point) => has(point, others, combination))
      .flatMap((point) => {
        const rate = measure.of(point.cell);
        return rate === null
          ? []
          : [
              {
                at: at(point.values[axis] ?? ''),
                ...rate,
                measured: point.cell.basis === 'measured',
              },
            ];
      })
      .sort((a, b) => a.at - b.at),
  }));
  const all = lines.flatMap((line) => line.points);
  const most = Math.max(0, ...all.map((point) => point.mean + (point.error ?? 0)));
  const head = (index: number) => (numbers ? `${over?.name} ${index}` : (values[index] ?? ''));
  const latencies = measure.unit === 'ns';
  return {
    summary: lines
      .map(
        (line) =>
          `${line.name}: from ${told1(line, measure, Math.min)} to ${told1(
            line,
            measure,
            Math.max,
          )}.`,
      )
      .join(' '),
    legend: lines.map((line, index) => ({ name: line.name, color: index, dash: dashOf(index) })),
    height: 300,
    option: (theme, hidden) => ({
      grid: { left: 76, right: 24, top: 20, bottom: 52 },
      tooltip: tooltip(theme, (hits) => {
        const entries = hits.flatMap((hit) => {
          const point = lines.find((line) => line.name === hit.seriesName)?.points[hit.dataIndex];
          return point
            ? [{ color: hit.color, name: hit.seriesName, value: said(point, measure) }]
            : [];
        });
        const first = lines.find((line) => line.name === hits[0]?.seriesName)?.points[
          hits[0]?.dataIndex ?? 0
        ];
        return told(head(first?.at ?? 0), entries);
      }),
      xAxis: overAxis(theme, over ? titled(over) : '', values),
      yAxis: valueAxis(
        theme,
        '',
        measure.unit,
        latencies && all.length > 0
          ? logarithmic(all.map((point) => point.mean))
          : linear(measure.unit, most),
      ),
      series: lines.flatMap((line, index) =>
        hidden.has(line.name) ? [] : drawn(theme, line, index),
      ),
    }),
    table: () => ({
      caption: `${measure.title} over ${over?.name}`,
      head: [over?.name ?? '', ...lines.map((line) => line.name)],
      rows: values.map((value) => [
        value,
        ...lines.map((line) => {
          const point = line.points.find((each) => each.at === at(value));
          return point ? said(point, measure) : '';
        }),
      ]),
    }),
  };
}

function said(point: Line['points'][number], measure: Measure): string {
  return `${withError(point, measure.unit)}${point.measured ? '' : ' (predicted)'}`;
}

function told1(line: Line, measure: Measure, of: (...values: number[]) => number): string {
  return line.points.length === 0
    ? 'nothing'
    : quantity(of(...line.points.map((point) => point.mean)), measure.unit);
}

/** A line with its confidence band. */
function drawn(theme: Theme, line: Line, index: number): Option[] {
  const color = colorOf(theme, index);
  const known = line.points.flatMap((point) =>
    point.error === null
      ? []
      : [[point.at, Math.max(0, point.mean - point.error), point.mean + point.error]],
  );
  const guessed = line.points.flatMap((point) =>
    point.error === null || point.measured
      ? []
      : [[point.at, Math.max(0, point.mean - point.error), point.mean + point.error]],
  );
  return [
    band(color, known),
    whiskers(color, guessed),
    {
      type: 'line',
      name: line.name,
      color,
      lineStyle: { width: 2, type: dashOf(index) },
      data: line.points.map((point) => ({
        value: [point.at, point.mean],
        symbol: 'circle',
        symbolSize: point.measured ? 8 : 6,
        itemStyle: point.measured
          ? { color }
          : { color: theme.background, borderColor: color, borderWidth: 1.5 },
      })),
    },
  ];
}
