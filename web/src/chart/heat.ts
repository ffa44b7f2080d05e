// Heat maps: a value for each pair of two axes. Each cell shows its number, so colour is optional.

import type { Unit } from '../document';
import { quantity, tick } from '../format';
import type { Theme } from '../theme';
import type { Drawing } from './panel';
import { told, tooltip, withError, type Option } from './parts';

export interface Heat {
  column: number;
  row: number;
  /** The value; `null` if unknown. */
  value: number | null;
  /** Half the width of the 95 % confidence interval, or the bound of a prediction's error. */
  error?: number | null;
  /** Whether the value is predicted instead of measured. */
  predicted: boolean;
  /** Text of the cell in place of the value. */
  word?: string;
}

export interface Axes {
  columns: string[];
  rows: string[];
  columnTitle: string;
  rowTitle: string;
}

export function heatMap(cells: Heat[], axes: Axes, unit: Unit, title: string): Drawing {
  const values = cells.flatMap((cell) =>
    cell.value === null || cell.value <= 0 ? [] : [cell.value],
  );
  const [low, high] = [Math.min(...values), Math.max(...values)];
  // Latencies and rates of a sweep differ by orders of magnitude, so colours are logarithmic.
  const share = (value: number) =>
    high > low ? Math.log(value / low) / Math.log(high / low) : 0.5;
  const text = (cell: Heat) =>
    cell.word ??
    (cell.value === null
      ? '–'
      : `${cell.predicted ? '~' : ''}${tick(cell.value, unit).replace(' ', '\u00a0')}`);
  const said = (cell: Heat) =>
    cell.word ??
    (cell.value === null
      ? 'not known'
      : `${withError({ mean: cell.value, error: cell.error ?? null }, unit)}${
          cell.predicted ? ' (predicted)' : ''
        }`);
  const longest = Math.max(...axes.rows.map((row) => row.length));
  const left = 34 + Math.min(150, 7 * longest);
  return {
    summary:
      values.length === 0
        ? 'Nothing is known.'
        : `${title} from ${quantity(low, unit)} to ${quantity(high, unit)}.`,
    legend: [],
    height: 74 + 30 * axes.rows.length,
    option: (theme) => ({
      grid: { left, right: 12, top: 12, bottom: 52 },
      tooltip: tooltip(
        theme,
        ([hit]) => {
          const cell = cells[hit?.dataIndex ?? 0];
          return cell
            ? told(
                `${axes.columnTitle} ${axes.columns[cell.column]}, ${axes.rowTitle} ${
                  axes.rows[cell.row]
                }`,
                [{ color: fill(theme, cell, share), name: title, value: said(cell) }],
              )
            : '';
        },
        'item',
      ),
      xAxis: axis(theme, axes.columnTitle, axes.columns, 28),
      yAxis: { ...axis(theme, axes.rowTitle, axes.rows, left - 16), nameRotate: 90 },
      series: [
        {
          type: 'custom',
          name: title,
          encode: { x: 0, y: 1 },
          data: cells.map((cell) => [cell.column, cell.row, cell.value ?? 0]),
          renderItem: (
            { dataIndex }: { dataIndex: number },
            api: { coord(point: number[]): [number, number]; size(of: number[]): [number, number] },
          ) => {
            const cell = cells[dataIndex];
            if (!cell) return null;
            const [x, y] = api.coord([cell.column, cell.row]);
            const [width, height] = api.size([1, 1]);
            const written = text(cell);
            const size = Math.max(8, Math.min(12, (width - 4) / (0.58 * written.length)));
            return {
              type: 'group',
              children: [
                {
                  type: 'rect',
                  shape: {
                    x: x - width / 2 + 1,
                    y: y - height / 2 + 1,
                    width: width - 2,
                    height: height - 2,
                  },
                  style: {
                    fill: fill(theme, cell, share),
                    ...(cell.predicted
                      ? { stroke: theme.line, lineWidth: 1, lineDash: [3, 3] }
                      : {}),
                  },
                },
                {
                  type: 'text',
                  x,
                  y,
                  style: {
                    text: written,
                    fill: ink(theme, cell, share),
                    fontSize: size,
                    align: 'center',
                    verticalAlign: 'middle',
                  },
                },
              ],
            };
          },
        },
      ],
    }),
    table: () => ({
      caption: title,
      head: [`${axes.rowTitle} \\ ${axes.columnTitle}`, ...axes.columns],
      rows: axes.rows.map((row, index) => [
        row,
        ...axes.columns.map((_, column) => {
          const cell = cells.find((each) => each.column === column && each.row === index);
          return cell ? said(cell) : '';
        }),
      ]),
    }),
  };
}

function axis(theme: Theme, name: string, data: string[], nameGap: number): Option {
  return {
    type: 'category',
    data,
    name,
    nameLocation: 'middle',
    nameGap,
    nameTextStyle: { color: theme.muted },
    axisLabel: { color: theme.text, hideOverlap: true },
    axisTick: { show: false },
    axisLine: { lineStyle: { color: theme.line } },
  };
}

/** Colours from low to high: pale to strong on light, dim to bright on dark background. */
const SCALES = { light: ['#eaf2fc', '#0b4a94'], dark: ['#1d2b3d', '#8cc4ff'] } as const;

function fill(theme: Theme, cell: Heat, share: (value: number) => number): string {
  if (cell.value === null || cell.value <= 0) return theme.faint;
  const [from, to] = SCALES[theme.dark ? 'dark' : 'light'];
  const mix = (at: number) =>
    Math.round(
      parseInt(from.slice(at, at + 2), 16) * (1 - share(cell.value ?? 1)) +
        parseInt(to.slice(at, at + 2), 16) * share(cell.value ?? 1),
    );
  return `rgb(${mix(1)}, ${mix(3)}, ${mix(5)})`;
}

/** Black or white, whichever has more contrast. */
function ink(theme: Theme, cell: Heat, share: (value: number) => number): string {
  const [red, green, blue] = (fill(theme, cell, share).match(/\d+/g) ?? []).map(Number);
  if (
    red === undefined ||
    green === undefined ||
    blue === undefined ||
    !fill(theme, cell, share).startsWith('rgb')
  )
    return theme.text;
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? '#101820' : '#ffffff';
}
