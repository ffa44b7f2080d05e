// Quantities with three significant digits and their unit, in the same form as in the program's
// tables (crates/study/src/words.rs).

import type { Unit } from './document';

export function threeDigits(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude >= 99.95) return value.toFixed(0);
  if (magnitude >= 9.995) return value.toFixed(1);
  if (magnitude >= 0.9995 || magnitude === 0) return value.toFixed(2);
  return value.toFixed(3);
}

function scaled(value: number, step: number, units: string[]): string {
  let unit = 0;
  // 999.5 would be shown as 1000, so the unit is chosen after rounding.
  while (Math.abs(value) >= Math.min(step, 1000) - 0.5 && unit + 1 < units.length) {
    value /= step;
    unit += 1;
  }
  return threeDigits(value) + units[unit];
}

export function iops(perSecond: number): string {
  return perSecond < 999.5
    ? perSecond.toFixed(perSecond < 10 && !Number.isInteger(perSecond) ? 1 : 0)
    : scaled(perSecond, 1000, ['', 'k', 'M', 'G']);
}

export function bandwidth(bytesPerSecond: number): string {
  return scaled(bytesPerSecond, 1024, [' B/s', ' KiB/s', ' MiB/s', ' GiB/s', ' TiB/s']);
}

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (unit + 1 < units.length && count / 1024 ** (unit + 1) >= 1) unit += 1;
  const scaledCount = count / 1024 ** unit;
  return `${Number.isInteger(scaledCount) ? scaledCount : threeDigits(scaledCount)} ${units[unit]}`;
}

export function duration(ns: number): string {
  return ns < 999.5 ? `${ns.toFixed(0)} ns` : scaled(ns, 1000, [' ns', ' µs', ' ms', ' s']);
}

export function seconds(s: number): string {
  const minutes = Math.floor(s / 60);
  if (minutes === 0) return `${threeDigits(s)} s`;
  const hours = Math.floor(minutes / 60);
  const rest = `${minutes % 60} min ${Math.round(s % 60)} s`;
  return hours === 0 ? rest : `${hours} h ${rest}`;
}

export function percent(share: number): string {
  return `${threeDigits(share)} %`;
}

export function moment(ms: number): string {
  return ms === 0
    ? 'simulated time'
    : new Date(ms)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, ' UTC');
}

/** Formats a value with its unit. */
export function quantity(value: number, unit: Unit): string {
  switch (unit) {
    case 'iops':
      return iops(value);
    case 'bytes_per_s':
      return bandwidth(value);
    case 'ns':
      return duration(value);
    case 'percent':
      return percent(value);
    case 'count':
      return threeDigits(value);
  }
}

/** Formats a value for an axis: shorter, whole numbers without decimals, zero without unit. */
export function tick(value: number, unit: Unit): string {
  if (value === 0) return '0';
  return quantity(value, unit)
    .replace(/(\d)\.0+(?=\D|$)/, '$1')
    .replace(/(\.\d*[1-9])0+(?=\D|$)/, '$1');
}

/** Capitalises the first letter: `read` becomes `Read`. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Most names of a list. Further ones are counted. */
const NAMES = 3;

/** The first names, and the number of others, as in crates/report/src/listed_names.rs. */
export function listedNames(names: string[]): string {
  const known = names.filter((name) => name !== '');
  const listed = known.slice(0, NAMES).join('; ');
  return known.length > NAMES ? `${listed} and ${known.length - NAMES} more` : listed;
}
