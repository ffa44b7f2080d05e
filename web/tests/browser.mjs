// A real browser, and the reports that it opens.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

/** The program under test, and the directory with the results that examples/simulated_results.rs has written. */
const program = needed('IOSONDE');
const results = needed('IOSONDE_RESULTS');
/** The headless shell comes first: it has no windows, whose creation for each context takes CPU time. */
const executablePath = ['chromium-headless-shell', 'chromium', 'chromium-browser'].map((name) => `/usr/bin/${name}`).find((path) => existsSync(path));

/** How long a page may take for anything, in milliseconds: a browser on a busy machine is slow, and nothing here is about speed. */
const patience = 120_000;

function needed(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run web/check.sh`);
  return value;
}

const work = mkdtempSync(join(tmpdir(), 'iosonde-web-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

/** Paths of results whose name begins so, in order. */
export function files(beginning) {
  const found = readdirSync(results).filter((name) => name.startsWith(beginning));
  return found.sort().map((name) => join(results, name));
}

export function read(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

export function temporary(name) {
  return join(work, name);
}

export function iosonde(...words) {
  return execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 });
}

/** Runs the command after the two paths and puts its output, the second path, to the first path, unless that exists. */
const ONCE = 'kept=$1 made=$2; shift 2; test -e "$kept" || { "$@" && cp "$made" "$kept.$$" && mv "$kept.$$" "$kept"; }';

/** Path of the JSON of a simulated study, which is in no history. Each study runs once for all test files and each build of the program: files that need it at the same time wait for the first of them. */
export function simulated(...words) {
  const kept = join(results, 'studies');
  const { mtimeMs, size } = statSync(program);
  const path = join(kept, `${createHash('sha256').update(JSON.stringify([mtimeMs, size, words])).digest('hex')}.json`);
  if (!existsSync(path)) {
    mkdirSync(kept, { recursive: true });
    const made = temporary('study.json');
    const command = [program, ...words, '--format', 'json', '--output', made, '--no-save'];
    execFileSync('flock', [`${path}.lock`, 'sh', '-c', ONCE, 'sh', path, made, ...command], { stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 });
  }
  return path;
}

/** Makes a report, and says where it is. */
export function report(name, ...words) {
  const path = temporary(`${name}.html`);
  iosonde('report', ...words, '--output', path);
  return path;
}

let browser;

export async function launch() {
  if (!executablePath) throw new Error('Chromium is missing: apt-get install chromium-headless-shell');
  browser = await chromium.launch({
    executablePath,
    timeout: patience,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

export async function close() {
  await browser?.close();
}

/** Opens a report. `trouble` gathers whatever a report must never do: errors, warnings, requests. Without a path, the page is empty. `show` opens a report in the same page, which takes less time than another page. */
export async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const trouble = [];
  let shown;
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) trouble.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => trouble.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const url = request.url();
    if (url !== shown && !/^(data|blob):/.test(url)) trouble.push(`request: ${url}`);
  });
  const show = (next) => {
    shown = pathToFileURL(next).href;
    return page.goto(shown);
  };
  if (path !== undefined) await show(path);
  return { page, trouble, show, close: () => context.close() };
}

/** The document that a report was given. */
export function documentOf(path) {
  const [, json] = /id="results">(.*?)<\/script>/s.exec(readFileSync(path, 'utf8'));
  return JSON.parse(json);
}

/** Path of a report whose document `change` has changed. */
export function altered(path, name, change) {
  const document = documentOf(path);
  change(document);
  const json = JSON.stringify(document).replaceAll('<', '\\u003c');
  const made = temporary(`${name}.html`);
  const page = readFileSync(path, 'utf8');
  writeFileSync(made, page.replace(/(id="results">).*?(<\/script>)/s, (_, start, end) => start + json + end));
  return made;
}

/** Opens a section whose content is folded away. */
export async function unfold(page, id) {
  await page.locator(`#${id} > details`).evaluateAll((all) => all.forEach((fold) => (fold.open = true)));
  await page.locator(`#${id} > details > :nth-child(2)`).first().waitFor({ state: 'attached' });
}

/** Opens all sections at once. */
export async function unfoldAll(page) {
  const ids = await page.locator('main > section.folded').evaluateAll((all) =>
    all.map((section) => {
      for (const fold of section.querySelectorAll(':scope > details')) fold.open = true;
      return section.id;
    }),
  );
  for (const id of ids) await page.locator(`#${id} > details > :nth-child(2)`).first().waitFor({ state: 'attached' });
}

/** Scrolls to a chart and waits until it is drawn. */
export async function drawn(page, id) {
  const panel = page.locator(`#${id}`);
  await panel.scrollIntoViewIfNeeded();
  await panel.locator('.canvas svg path').first().waitFor({ state: 'attached' });
  return panel;
}

/**
 * Scrolls to an element and clicks it, if nothing covers it. A click of Playwright also waits for frames. A click by script is none of a user, after ten of which Chromium drops downloads.
 * An element that moves before the click gets another one.
 */
async function clicked(locator) {
  for (let attempt = 1; ; attempt++) {
    const { covering, x, y } = await locator.evaluate((element) => {
      element.scrollIntoView({ block: 'center', behavior: 'instant' });
      const box = element.getBoundingClientRect();
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      const top = document.elementFromPoint(x, y);
      if (!element.checkVisibility() || !element.contains(top)) return { covering: `${top?.outerHTML.slice(0, 100)} is where ${element.textContent} should be` };
      window.wasClicked = false;
      element.addEventListener('click', () => (window.wasClicked = true), { once: true });
      return { covering: null, x, y };
    });
    if (covering === null) {
      await locator.page().mouse.click(x, y);
      if (await locator.page().evaluate(() => window.wasClicked)) return;
    }
    assert.ok(attempt < 20, covering ?? 'it moves away before each click');
  }
}

/** The table behind a chart: its head, and its rows of text. */
export async function tableBehind(panel) {
  const details = panel.locator('.behind details');
  if (!(await details.evaluate((element) => element.open))) await clicked(details.locator('summary'));
  const cells = (selector) => details.locator(selector).evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  await details.locator('table').waitFor();
  const [head] = await cells('thead tr');
  return { head, rows: await cells('tbody tr') };
}

const SIZES = { '': 1, k: 1e3, M: 1e6, G: 1e9, 'B/s': 1, 'KiB/s': 2 ** 10, 'MiB/s': 2 ** 20, 'GiB/s': 2 ** 30 };

/** Whether a text begins with the value, rounded to the digits that it shows: `93.4k ±1.2k`, `~170 MiB/s`. */
export function isRounded(text, value) {
  const [, digits, unit] = /^~?([\d.]+)\s?([KMG]iB\/s|B\/s|[kMG]?)/.exec(text) ?? [];
  if (digits === undefined) return false;
  const [whole, fraction] = digits.split('.');
  // A figure has at least two digits, so `100k` is rounded to 10k at most.
  const zeros = Math.min(/0*$/.exec(whole)[0].length, Math.max(0, whole.length - 2));
  const step = 10 ** (fraction === undefined ? zeros : -fraction.length);
  return Math.abs(Number(digits) * SIZES[unit] - value) <= (step / 2) * SIZES[unit] * 1.0001;
}

/** Saves a chart with one of its buttons. */
export async function saved(page, panel, button, click = clicked) {
  const [download] = await Promise.all([page.waitForEvent('download'), click(panel.getByRole('button', { name: button }))]);
  const path = temporary(download.suggestedFilename());
  await download.saveAs(path);
  return { path, content: readFileSync(path) };
}
