// Scales of axes: where a value lies, and at which values ticks are.

import type { Unit } from '../document';
import { tick } from '../format';

export interface Scale {
  kind: 'linear' | 'log' | 'names';
  min: number;
  max: number;
  ticks: Tick[];
  /** Whether the values rise downwards, as names do. */
  down?: boolean;
}

export interface Tick {
  at: number;
  text: string;
}

/** Position of a value between the ends of its axis, 0 to 1. */
export function place({ kind, min, max }: Scale, value: number): number {
  if (!(max > min)) return 0.5;
  return kind === 'log'
    ? Math.log(Math.max(value, min) / min) / Math.log(max / min)
    : (value - min) / (max - min);
}

/** Step of an axis of bytes: 1, 2 or 5 binary units, or a power of two of that. */
export function byteStep(most: number): number {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(most, 1)) / 10));
  const rough = most / 4 / unit;
  // Hundreds of a unit are halves and quarters of the next one.
  if (rough < 0.8 || rough > 80) return unit * 2 ** Math.round(Math.log2(rough));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough * 0.8) ?? 10;
  return step * power * unit;
}

function decimalStep(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  return ([1, 2, 2.5, 5, 10].find((each) => each * power >= (most / 4) * 0.8) ?? 10) * power;
}

/** From zero to a round number that is at least `most`. */
export function linear(unit: Unit, most: number): Scale {
  const high = most > 0 ? most : 1;
  const step =
    unit === 'percent' && high > 80 && high <= 100
      ? 25
      : unit === 'bytes_per_s'
        ? byteStep(high)
        : decimalStep(high);
  const count = Math.max(1, Math.ceil((high * (unit === 'percent' ? 1 : 1.005)) / step));
  const ticks = Array.from({ length: count + 1 }, (_, index) => ({
    at: index * step,
    text: tick(index * step, unit),
  }));
  return { kind: 'linear', min: 0, max: count * step, ticks };
}

/** A logarithmic scale around these values, with ticks at round numbers. */
export function logarithmic(values: number[], unit: Unit): Scale {
  const { min, max } = logBounds(values);
  const powers = Array.from(
    { length: Math.ceil(Math.log10(max / min)) + 2 },
    (_, index) => 10 ** (Math.floor(Math.log10(min) + 1e-9) + index),
  );
  const steps = max / min > 300 ? [1] : [1, 2, 5];
  const ticks = powers
    .flatMap((power) => steps.map((step) => step * power))
    .filter((mark) => mark >= min * 0.999 && mark <= max * 1.001)
    .map((at) => ({ at, text: tick(at, unit) }));
  return { kind: 'log', min, max, ticks };
}

/** Bounds of a logarithmic axis around the values: powers of ten, or 2 or 5 times one. */
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

/** A logarithmic scale of counts, such as depths, with a tick at each of them. */
export function counts(values: number[]): Scale {
  const sorted = [...new Set(values)].filter((value) => value > 0).sort((a, b) => a - b);
  const ticks = sorted.map((at) => ({ at, text: String(at) }));
  const [min, max] = [sorted[0] ?? 1, sorted.at(-1) ?? 1];
  return { kind: 'log', min: min === max ? min / 2 : min, max: min === max ? max * 2 : max, ticks };
}

/** Seconds of a run. */
export function times(from: number, to: number): Scale {
  const step = Math.max(decimalStep(Math.max(to - from, 0.1)), 0.1);
  const first = Math.ceil(from / step - 1e-9);
  const count = Math.floor((to - first * step) / step + 1e-6) + 1;
  const ticks = Array.from({ length: Math.max(0, count) }, (_, index) => {
    const at = (first + index) * step;
    return { at, text: String(Number(at.toPrecision(6))) };
  });
  return { kind: 'linear', min: from, max: to, ticks };
}

/** Names at equal distances; `down` is from top to bottom. */
export function names(all: string[], down = false): Scale {
  const ticks = all.map((text, at) => ({ at, text }));
  return { kind: 'names', min: -0.5, max: Math.max(0.5, all.length - 0.5), ticks, down };
}

/** Positions of the values of an axis of a sweep: their numbers, or their indexes. */
export function placesOf(values: string[]): { numbers: boolean; at: (value: string) => number } {
  const numbers = values.every((value) => /^[1-9]\d*$/.test(value));
  return { numbers, at: (value) => (numbers ? Number(value) : values.indexOf(value)) };
}

/** The horizontal scale of a sweep. */
export function overValues(values: string[]): Scale {
  if (placesOf(values).numbers) return counts(values.map(Number));
  return { ...names(values), min: 0, max: Math.max(1, values.length - 1) };
}
