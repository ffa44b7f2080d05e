// Heat maps: a value for each pair of two axes. Each cell shows its number, so colour is optional.

import type { Unit } from '../document';
import { tick } from '../format';
import type { Drawing } from './panel';
import { inGrid } from './parts';
import { names } from './scales';
import { textWidth } from './text';

export interface Heat {
  column: number;
  row: number;
  /** The value; `null` if unknown. */
  value: number | null;
  /** Half the width of the 95 % confidence interval, or the bound of a prediction's error. */
  error?: number | null;
  /** Whether the value is predicted instead of measured. */
  predicted: boolean;
  /** Text of the cell with its mark, as the program writes it; `null` to show the value. */
  shown: string | null;
}

/** Height of a row in pixels. */
const ROW_PX = 30;

export interface Axes {
  columns: string[];
  rows: string[];
  columnTitle: string;
  rowTitle: string;
  /** Whether rows rise from bottom to top, as rates do. */
  rising?: boolean;
}

/** Draws a map. Colours reach from the lowest to the highest value of `range`. */
export function heatMap(
  cells: Heat[],
  axes: Axes,
  unit: Unit,
  title: string,
  range = cells.flatMap((cell) => cell.value ?? []),
): Drawing {
  const values = range.filter((value) => value > 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  // Latencies and rates of a sweep differ by orders of magnitude, so colours are logarithmic.
  const share = (value: number) =>
    high > low ? Math.log(value / low) / Math.log(high / low) : 0.5;
  const text = (cell: Heat) =>
    (cell.shown ?? (cell.value === null ? '–' : tick(cell.value, unit))).replace(' ', '\u00a0');
  const said = (cell: Heat) =>
    cell.value === null
      ? (cell.shown ?? 'not known')
      : inGrid({ mean: cell.value, error: cell.error ?? null }, unit, cell);
  // A cell can have a sign instead of a number.
  const numbers = cells.filter((cell) => (cell.value ?? 0) > 0 && /\d/.test(said(cell)));
  numbers.sort((a, b) => (a.value ?? 0) - (b.value ?? 0));
  const [lowest, highest] = [numbers[0], numbers.at(-1)];
  const height = ROW_PX * axes.rows.length;
  const indexed = axes.rows.map((row, index) => [row, index] as const);
  const rowsDown = axes.rising ? indexed.reverse() : indexed;
  // A title that is longer than the axis stands above it.
  const isLong = textWidth(axes.rowTitle) > height;
  return {
    summary:
      lowest && highest
        ? `${title} from ${said(lowest)} to ${said(highest)}.`
        : 'Nothing is known.',
    plot: {
      x: { title: axes.columnTitle, scale: names(axes.columns), lines: false },
      strips: [
        {
          title: isLong ? axes.rowTitle : '',
          height,
          y: {
            title: isLong ? '' : axes.rowTitle,
            scale: names(axes.rows, !axes.rising),
            lines: false,
          },
          marks: [
            {
              kind: 'cells',
              cells: cells.map((cell) => ({
                column: cell.column,
                row: cell.row,
                text: text(cell),
                share: cell.value === null || cell.value <= 0 ? null : share(cell.value),
                predicted: cell.predicted,
              })),
            },
          ],
        },
      ],
      labels: false,
    },
    stops: cells.map((cell) => ({
      x: cell.column,
      y: cell.row,
      head: `${axes.columnTitle} ${axes.columns[cell.column]}, ${axes.rowTitle} ${
        axes.rows[cell.row]
      }`,
      lines: [{ slot: null, name: title, value: said(cell) }],
    })),
    table: () => ({
      caption: title,
      head: [`${axes.rowTitle} \\ ${axes.columnTitle}`, ...axes.columns],
      rows: rowsDown.map(([row, index]) => [
        row,
        ...axes.columns.map((_, column) => {
          const cell = cells.find((each) => each.column === column && each.row === index);
          return cell ? said(cell) : '';
        }),
      ]),
    }),
  };
}
