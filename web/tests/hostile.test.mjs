// Saved charts, and results with texts from outside: in a real browser, over results of simulated devices.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { close, drawn, files, iosonde, launch, open, read, report, saved, simulated, tableBehind, temporary, unfold, unfoldAll } from './browser.mjs';

/** What a terminal, a browser and a spreadsheet would obey. */
const EVIL = '=1+1\u001b]0;x\u0007\u009b31m\u202e<img src=x onerror="document.title=1"></script><script>document.title=1</script>';
const made = {};

before(async () => {
  await launch();
  made.probes = simulated('probe', 'sim:nvme', 'sim:sata-ssd');
  made.probe = report('probe', made.probes, '--expect', 'gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8');
});

after(close);

describe('saving', () => {
  test('any chart as SVG, PNG and CSV', async () => {
    const { page, trouble, close } = await open(made.probe);
    await unfold(page, 'comparison');
    for (const id of ['percentiles', 'timeline', 'depth-iops', 'comparison-0']) {
      const panel = await drawn(page, id);
      // One chart is saved with the mouse.
      const click = id === 'percentiles' ? (button) => button.click() : undefined;
      const svg = await saved(page, panel, /^SVG/, click);
      assert.match(svg.path, new RegExp(`${id}\\.svg$`));
      const text = svg.content.toString();
      assert.ok(text.startsWith('<svg') && text.includes(await panel.locator('h3').innerText()), 'it has its title');
      for (const part of [await page.title(), await page.locator('header p').innerText()]) assert.ok(text.includes(`>${part}</text>`), part);
      const png = await saved(page, panel, /^PNG/, click);
      assert.deepEqual([...png.content.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
      assert.ok(png.content.length > 5000, `${png.content.length} bytes`);
      const csv = (await saved(page, panel, /^CSV/, click)).content.toString().trim().split('\n');
      const { rows } = await tableBehind(panel);
      assert.equal(csv.length, rows.length + 1);
    }
    assert.deepEqual(trouble, []);
    await close();
  });

  test('saved SVG has the note below the chart', async () => {
    const { page, close } = await open(made.probe);
    const panel = await drawn(page, 'depth-iops');
    const note = await panel.locator('.note').textContent();
    assert.match(note, /short runs of the search/);
    const svg = (await saved(page, panel, /^SVG/)).content.toString();
    const texts = await page.evaluate((source) => {
      const { documentElement } = new DOMParser().parseFromString(source, 'image/svg+xml');
      const height = Number(documentElement.getAttribute('height'));
      return [...documentElement.querySelectorAll('text')].map((text) => [text.textContent, Number(text.getAttribute('y')) < height]);
    }, svg);
    const lines = texts.map(([text]) => text).join(' ');
    // The note may name limits that have room in only one of the two charts.
    assert.ok(lines.includes('Points are short runs of the search, not the runs of the summary.'), lines);
    assert.ok(texts.every(([, isInside]) => isInside), lines);
    await close();
  });

  test('names in saved CSV are no formulas', async () => {
    const result = read(files('failing')[0]);
    result.plan.jobs[0].name = EVIL;
    const path = temporary('formula.json');
    writeFileSync(path, JSON.stringify(result));
    const { page, close } = await open(report('formula', path));
    const panel = await drawn(page, 'percentiles');
    const csv = (await saved(page, panel, /^CSV/)).content.toString();
    assert.ok(csv.includes(`"'=1+1\\u001b]0;x\\u0007\\u009b31m\\u202e<img src=x onerror=""document.title=1"">`), csv);
    assert.doesNotMatch(csv, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
    await close();
  });
});

describe('what results may hold', () => {
  test('names are text, never HTML', async () => {
    const title = 'the title stays';
    const sweep = simulated('sweep', 'sim:hdd', '--iodepth', '1,2', '--runtime', '1');
    for (const [number, file] of [files('failing')[0], files('burst')[0], made.probes, sweep].entries()) {
      const path = temporary(`evil-${number}.json`);
      const replaced = corrupted(read(file), EVIL, path);
      assert.ok(replaced > 5, `${file}: ${replaced} texts`);
      const { page, trouble, close } = await open(report(`evil-${number}`, path, '--title', title));
      await unfoldAll(page);
      const ids = await page.locator('figure.panel').evaluateAll((panels) => panels.map((panel) => panel.id));
      for (const id of ids) {
        const panel = await drawn(page, id);
        await panel.locator('.canvas').hover();
        await panel.locator('.canvas').press('Home');
        await tableBehind(panel);
      }
      await page.locator('#page summary').evaluateAll((all) => all.forEach((summary) => (summary.parentElement.open = true)));
      assert.equal(await page.locator('#page img, #page script').count(), 0, file);
      assert.equal(await page.title(), title, file);
      assert.deepEqual(trouble, [], file);
      await close();
    }
    const titled = await open(report('evil-title', files('failing')[0], '--title', EVIL));
    assert.equal(await titled.page.title(), escaped(EVIL));
    assert.deepEqual(titled.trouble, []);
    await titled.close();
  });

  test('an I/O error is a verdict and a finding', async () => {
    const { page, close } = await open(report('failing', ...files('failing')));
    await unfold(page, 'figures');
    for (const place of ['.headline', '.tiles']) {
      assert.ok((await page.locator(`${place} .chip.bad`).allInnerTexts()).includes('I/O error'), place);
    }
    assert.match(await page.locator('.findings').innerText(), /EIO/);
    await close();
  });

  test("fio's own JSON stands beside ours", async () => {
    const json = temporary('fio.json');
    iosonde('fio', '--name=own', '--ioengine=null', '--size=8m', '--rw=randread', '--bs=4k', '--output-format=json', `--output=${json}`);
    const { page, trouble, close } = await open(report('fio', json, ...files('burst')));
    await unfold(page, 'figures');
    const ios = await page.locator('.headline tbody tr').allInnerTexts();
    assert.equal(ios.length, 2);
    await drawn(page, 'percentiles');
    assert.deepEqual(trouble, []);
    await close();
  });
});

/** Text as the page shows it: characters that nobody sees are written out. */
function escaped(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Names of texts with which the program does not read a document. */
const refused = new Set();

/** The name of a text and the one around it. */
function nameOf(place) {
  return place.split('/').slice(-2).join('/');
}

/** Replaces every text with which the program still reads the document, writes it, and says how many texts there are. */
function corrupted(document, text, path) {
  const places = new Set();
  const walk = (value, place, change) => {
    if (typeof value === 'string') return change(value, place);
    if (value === null || typeof value !== 'object') return value;
    if (Array.isArray(value)) return value.map((one) => walk(one, `${place}/*`, change));
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, walk(one, `${place}/${name}`, change)]));
  };
  const isRead = (candidate) => {
    writeFileSync(path, JSON.stringify(candidate));
    try {
      iosonde('report', path, '--output', temporary('candidate.html'));
      return true;
    } catch {
      return false;
    }
  };
  const replace = (some) => {
    const candidate = walk(document, '', (old, place) => (some.includes(place) ? text : old));
    if (isRead(candidate)) {
      document = candidate;
    } else if (some.length > 1) {
      replace(some.slice(0, some.length / 2));
      replace(some.slice(some.length / 2));
    } else {
      refused.add(nameOf(some[0]));
    }
  };
  walk(document, '', (old, place) => (places.add(place), old));
  // Names that the program refused in an earlier document are tried one by one, since halves with them are refused too.
  const [single, together] = [true, false].map((was) => [...places].filter((place) => refused.has(nameOf(place)) === was));
  replace(together);
  single.forEach((place) => replace([place]));
  if (document.labels) document.labels = { [text]: text };
  assert.ok(isRead(document));
  let count = 0;
  walk(document, '', (found) => (count += found === text ? 1 : 0));
  return count;
}
