// Light and dark theme: the setting of the system, or the choice of the reader.

export interface Theme {
  dark: boolean;
  background: string;
  text: string;
  muted: string;
  line: string;
  faint: string;
  /** Series colours, each with a contrast of at least 3:1 to the background. */
  colors: string[];
  good: string;
  bad: string;
}

const LIGHT: Theme = {
  dark: false,
  background: '#ffffff',
  text: '#1b2430',
  muted: '#4d5966',
  line: '#8a96a3',
  faint: '#e3e8ee',
  colors: ['#1d5fd0', '#e06a00', '#0a9f82', '#c76bc9', '#6a2a08', '#10142c'],
  good: '#15803d',
  bad: '#b42318',
};

const DARK: Theme = {
  dark: true,
  background: '#171c23',
  text: '#e6ebf1',
  muted: '#aab4c0',
  line: '#6f7b88',
  faint: '#2c343e',
  colors: ['#3d8bff', '#ff9a57', '#2fc7a0', '#e58be0', '#f0e05a', '#e6ebf1'],
  good: '#6fd08c',
  bad: '#ff8a80',
};

export type Choice = 'auto' | 'light' | 'dark';

const KEY = 'iosonde-theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');
const listeners: (() => void)[] = [];
let choice: Choice = remembered();
let printing = false;

// Without local storage, as for some files, the choice ends with the page.
function remembered(): Choice {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : 'auto';
  } catch {
    return 'auto';
  }
}

export function theme(): Theme {
  if (printing) return LIGHT;
  const dark = choice === 'auto' ? system.matches : choice === 'dark';
  return dark ? DARK : LIGHT;
}

export function chosen(): Choice {
  return choice;
}

export function choose(next: Choice): void {
  choice = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Without storage the choice ends with the page.
  }
  changed();
}

/** Selects the light theme while printing. */
export function setPrinting(value: boolean): void {
  printing = value;
  changed();
}

export function isPrinting(): boolean {
  return printing;
}

export function onThemeChange(listener: () => void): void {
  listeners.push(listener);
}

function changed(): void {
  document.documentElement.dataset['theme'] = theme().dark ? 'dark' : 'light';
  for (const listener of listeners) listener();
}

system.addEventListener('change', changed);
changed();
