// Figures with the digits that their intervals support: the rules of
// crates/report/src/known_digits.rs, whose cases the tests of the page read too.

import type { Unit } from './document';

type NamedUnit = [size: number, name: string];

/** Units of a quantity, from the smallest. */
const UNITS: { [unit in Unit]: NamedUnit[] } = {
  iops: [
    [1, ''],
    [1e3, 'k'],
    [1e6, 'M'],
    [1e9, 'G'],
  ],
  bytes_per_s: [
    [1, ' B/s'],
    [2 ** 10, ' KiB/s'],
    [2 ** 20, ' MiB/s'],
    [2 ** 30, ' GiB/s'],
    [2 ** 40, ' TiB/s'],
  ],
  ns: [
    [1, ' ns'],
    [1e3, ' µs'],
    [1e6, ' ms'],
    [1e9, ' s'],
  ],
  percent: [[1, ' %']],
  count: [[1, '']],
};
/** Most significant digits of a figure. */
const MOST_DIGITS = 3;
/** Significant digits of a figure whose interval is not known, or not shown and wide. */
const LEAST_DIGITS = 2;
/** Values from here on are shown in the next unit. */
const NEXT_UNIT_FROM = 999.5;

/** A figure rounded to its known digits, in multiples of its unit. */
interface RoundedFigure {
  number: string;
  /** Half the interval; `null`: the interval is not known. */
  half: string | null;
  unit: string;
  isZero: boolean;
}

/** Power of ten of the last digit, from the figure and half its interval in its unit. */
type LastPlace = (scaled: number, half: number | null) => number;

/** A figure with half its interval: `93.4k ±1.2k`, `3.20 ±0.01 GiB/s`; `~3.1k` without one. */
export function withInterval(value: number, half: number | null, unit: Unit): string {
  const rounded = roundedFigure(value, half, UNITS[unit], placeBesideInterval);
  if (rounded.half === null) return withoutInterval(rounded);
  const name = rounded.unit.startsWith(' ') ? '' : rounded.unit;
  return `${rounded.number}${name} ±${rounded.half}${rounded.unit}`;
}

/** A figure with its known digits, without its interval: `365 MiB/s`, `~3.1k`. */
export function knownDigits(value: number, half: number | null, unit: Unit): string {
  return withoutInterval(roundedFigure(value, half, UNITS[unit], placeWithoutInterval));
}

function withoutInterval({ number, half, unit, isZero }: RoundedFigure): string {
  return `${half === null && !isZero ? '~' : ''}${number}${unit}`;
}

/** Rounds a figure in the first unit in which it stays below the next unit. */
function roundedFigure(
  value: number,
  half: number | null,
  units: NamedUnit[],
  lastPlace: LastPlace,
): RoundedFigure {
  const known = half !== null && half < value ? half : null;
  const fits = ([size]: NamedUnit) => {
    const scaled = value / size;
    const step = tenTo(lastPlace(scaled, known === null ? null : known / size));
    return Math.round(scaled / step) * step < NEXT_UNIT_FROM;
  };
  const [size, unit]: NamedUnit = units.find(fits) ?? units.at(-1) ?? [1, ''];
  const [scaled, width] = [value / size, known === null ? null : known / size];
  const place = lastPlace(scaled, width);
  const step = tenTo(place);
  const rounded = Math.round(scaled / step) * step;
  const decimals = Math.max(0, -place);
  return {
    number: rounded.toFixed(decimals),
    half: width === null ? null : widened(width + Math.abs(scaled - rounded), step, decimals),
    unit,
    isZero: rounded <= 0,
  };
}

/** Half an interval, rounded up so that the printed interval contains the measured one. */
function widened(width: number, step: number, decimals: number): string {
  // Binary fractions of a decimal step must not round up by a whole step.
  return (Math.max(1, Math.ceil(width / step - 1e-6)) * step).toFixed(decimals);
}

/** Last digit of a figure that is shown with its interval. */
function placeBesideInterval(scaled: number, half: number | null): number {
  if (half === null) return placeOfDigits(scaled, LEAST_DIGITS);
  const finest = placeOfDigits(scaled, MOST_DIGITS);
  return half > 0 ? Math.max(leadingPlace(half) - 1, finest) : finest;
}

/** Last digit of a figure that is shown without its interval. */
function placeWithoutInterval(scaled: number, half: number | null): number {
  const coarsest = placeOfDigits(scaled, LEAST_DIGITS);
  if (half === null) return coarsest;
  return Math.min(coarsest, Math.max(placeOfDigits(scaled, MOST_DIGITS), placeOfInterval(half)));
}

/** Last place of a figure with `digits` digits, but at most two decimals from 0.1 on. */
function placeOfDigits(scaled: number, digits: number): number {
  if (scaled <= 0) return 0;
  const leading = leadingPlace(scaled);
  const last = leading - digits + 1;
  // 99.96 has its third digit where 100 has it.
  const isRoundedUp = scaled >= tenTo(leading + 1) - tenTo(last) / 2;
  return Math.max(isRoundedUp ? last + 1 : last, scaled >= 0.1 ? -2 : -3);
}

/** Last known place by half an interval: its first digit, or the second if the first is 1. */
function placeOfInterval(half: number): number {
  if (half <= 0) return -Infinity;
  const place = leadingPlace(half);
  return half / tenTo(place) < 1.95 ? place - 1 : place;
}

/** Power of ten of the first digit that is not zero; 0 for zero. */
function leadingPlace(value: number): number {
  // A value just below a power of ten, such as 999.9999999, has the place of that power.
  return value > 0 ? Math.floor(Math.log10(value) + 1e-9) : 0;
}

/** A power of ten, without the error of `10 ** place`. */
function tenTo(place: number): number {
  return Number(`1e${place}`);
}
