// Size and layout of reports in a real browser: bytes, screens, paper, texts that overlap, labels from outside.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { close, documentOf, drawn, files, iosonde, launch, open, read, report, temporary, unfoldAll } from './browser.mjs';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const made = {};

before(async () => {
  await launch();
  const store = temporary('layout.db');
  const keep = (...words) => iosonde(...words, '--store', store);
  keep('probe', 'sim:nvme');
  made.probe = report('layout-probe', '--store', store, 'latest');
  keep('probe', 'sim:sata-ssd', '--quick', '--label', 'disk=old');
  keep('probe', 'sim:hdd', '--quick', '--label', 'disk=new');
  keep('sweep', 'sim:sata-ssd', '--rw', 'randread,randwrite', '--bs', '4k,16k', '--iodepth', '1,4,16', '--exhaustive', '--runtime', '1');
  made.sweep = report('layout-sweep', '--store', store, 'latest');
  keep('load', 'sim:read_us=700,write_us=700,parallel=4', '--rw', 'randrw', '--matrix', '4', '--runtime', '1');
  made.load = report('layout-load', '--store', store, 'latest');
  keep('probe', 'sim:ceph', '--quick');
  keep('probe', 'sim:nvme,seed=7', '--quick');
  const ids = iosonde('list', '--store', store, '--format', 'csv').trim().split('\n').slice(1).map((line) => line.split(',')[0]);
  assert.equal(ids.length, 7);
  made.seven = report('layout-seven', '--store', store, ...ids);
  made.twice = report('layout-twice', '--store', store, ids[0], ids[0]);
});

after(close);

test('a probe has at most 400 kB, seven results at most 1 MB', () => {
  for (const [name, most] of [['probe', 400_000], ['seven', 1_000_000]]) {
    const { size } = statSync(made[name]);
    assert.ok(size <= most, `${name}: ${size} bytes`);
  }
});

test('seven results are one comparison of few screens', async (context) => {
  const { page, trouble, close } = await open(made.seven);
  const [screens, controls] = await page.evaluate(() => [document.documentElement.scrollHeight / innerHeight, document.querySelectorAll('button, input, select, summary').length]);
  context.diagnostic(`${screens.toFixed(1)} screens, ${controls} controls`);
  const answer = await page.locator('.compared').boundingBox();
  assert.ok(answer.y + answer.height < 900, 'the answer is on the first screen');
  assert.ok(screens < 7 && controls < 200, `${screens} screens, ${controls} controls`);
  const subjects = await page.locator('.compared tbody th').allInnerTexts();
  assert.equal(new Set(subjects).size, 5, `${subjects}`);
  assert.ok(subjects.some((name) => name.includes('disk=old')) && !subjects.some((name) => /\.json|\/tmp/.test(name)), `${subjects}`);
  assert.ok((await page.locator('nav a').count()) >= 6);
  assert.deepEqual(trouble, []);
  await close();
});

test('a result that the report has twice is drawn once', async () => {
  const { page, close } = await open(made.twice);
  const once = await open(made.probe);
  const texts = (of) => of.locator('#charts .canvas svg text').allTextContents();
  await drawn(page, 'percentiles');
  await drawn(once.page, 'percentiles');
  assert.deepEqual(await page.locator('.tiles dt').allInnerTexts(), await once.page.locator('.tiles dt').allInnerTexts());
  assert.equal((await texts(page)).length, (await texts(once.page)).length);
  await once.close();
  await close();
});

test('what devices did stands beside what the run did, at the same times', async () => {
  const directory = temporary('devices-of-run');
  mkdirSync(directory);
  const store = temporary('devices.db');
  iosonde('--store', store, 'fio', '--name=real', '--rw=randread', '--bs=4k', '--size=8m', '--runtime=2', '--time_based', `--directory=${directory}`);
  const { page, trouble, close } = await open(report('layout-devices', '--store', store, 'latest'));
  const last = async (id) => (await drawn(page, id)).locator('.canvas svg text[text-anchor="middle"]').allTextContents();
  assert.deepEqual(await last('devices'), await last('timeline'));
  assert.deepEqual(await page.evaluate(collisions), []);
  assert.ok(!(await page.locator('#devices .legend').isVisible()), 'names stand at the lines');
  // The host, the kernel and the date are at the top.
  const { hosts } = documentOf(temporary('layout-devices.html'));
  const about = await page.locator('header p').innerText();
  assert.ok(about.includes(hosts[0].hostname) && about.includes(hosts[0].kernel) && /\d{4}-\d\d-\d\d/.test(about), about);
  assert.deepEqual(trouble, []);
  await close();
});

test('no page is wider than a phone', async () => {
  for (const name of Object.keys(made)) {
    const { page, close } = await open(made[name], { viewport: { width: 400, height: 800 } });
    await unfoldAll(page);
    await everyChart(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 400, name);
    await close();
  }
});

test('texts of a chart neither overlap nor leave it', async () => {
  for (const name of ['probe', 'seven', 'sweep', 'load']) {
    for (const width of [400, 900, 1440]) {
      const { page, close } = await open(made[name], { viewport: { width, height: 900 } });
      await unfoldAll(page);
      await everyChart(page);
      assert.deepEqual(await page.evaluate(collisions), [], `${name} at ${width} px`);
      await close();
    }
  }
});

test('a probe prints on at most three pages', async () => {
  const { page, close } = await open(made.probe);
  const pdf = (await page.pdf({ preferCSSPageSize: true })).toString('latin1');
  const pages = pdf.match(/\/Type\s*\/Page\b(?!s)/g).length;
  assert.ok(pages <= 3, `${pages} pages`);
  await close();
});

test('axe finds no violation, in light and dark', async () => {
  for (const name of ['probe', 'seven']) {
    for (const colorScheme of ['light', 'dark']) {
      const { page, close } = await open(made[name], { colorScheme });
      await unfoldAll(page);
      await everyChart(page);
      await page.evaluate(readFileSync(AXE, 'utf8'));
      const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
      assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`), [], `${name} ${colorScheme}`);
      await close();
    }
  }
});

test('six colours differ to colour-blind eyes, and stand out', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const { page, close } = await open(made.probe, { viewport: { width: 400, height: 800 }, colorScheme });
    const panel = await drawn(page, 'percentiles');
    const colors = await panel.locator('.canvas svg path.line').evaluateAll((all) => all.map((line) => line.getAttribute('stroke')));
    assert.equal(new Set(colors).size, 6, `${colors}`);
    const background = colorScheme === 'light' ? 1 : luminance(linear('#171c23'));
    for (const color of colors) {
      const [a, b] = [luminance(linear(color)), background];
      assert.ok((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) >= 3, `${color} on ${colorScheme}`);
    }
    for (const [kind, matrix] of Object.entries(VISION)) {
      colors.forEach((one, index) => {
        for (const other of colors.slice(index + 1)) assert.ok(distance(lab(seen(matrix, one)), lab(seen(matrix, other))) > 15, `${kind}: ${one} and ${other}`);
      });
    }
    await close();
  }
});

describe('labels from outside', () => {
  const LABELS = {
    html: '<img src=x onerror="document.title=1"><script>document.title=1</script>',
    quotes: `"'\`&quot;"; alert(1) //`,
    'right-to-left marks': 'safe\u202egnp.exe\u2066\u200f',
    'much text': `begin-${'long '.repeat(2000)}-end`,
    'one word': `begin-${'x'.repeat(10_000)}-end`,
  };
  for (const [kind, label] of Object.entries(LABELS)) {
    test(`${kind} are harmless and legible`, async () => {
      const paths = files('depth-sata-ssd').slice(0, 2).map((file, index) => {
        const result = read(file);
        result.plan.jobs[0].name = `${label} ${index}`;
        result.labels = { [label]: `${index} ${label}` };
        const path = temporary(`hostile-${index}.json`);
        writeFileSync(path, JSON.stringify(result));
        return path;
      });
      for (const width of [400, 1280]) {
        const { page, trouble, close } = await open(report('hostile', ...paths, '--title', 'stays'), { viewport: { width, height: 800 } });
        await unfoldAll(page);
        await everyChart(page);
        assert.equal(await page.title(), 'stays');
        assert.equal(await page.locator('#page img, #page script').count(), 0);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
        assert.deepEqual(await page.evaluate(collisions), [], `${width} px`);
        const text = await page.locator('#page').innerText();
        assert.doesNotMatch(text, /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/);
        // The end of a name is seen too, since names mostly differ there.
        if (label.endsWith('-end')) assert.match(text, /begin-[^\n]*…[^\n]*-end/);
        assert.ok((await page.evaluate(() => document.documentElement.scrollHeight)) < (width === 400 ? 12_000 : 8_000));
        assert.deepEqual(trouble, []);
        await close();
      }
    });
  }
});

test('without scripts the page has the figures as text', async () => {
  const { page, close } = await open(made.probe, { javaScriptEnabled: false });
  const [study] = documentOf(made.probe).studies;
  const text = await page.locator('noscript main').innerText();
  assert.ok(text.includes(study.sentence), text);
  assert.ok(await page.locator('noscript table tr').count() > 7);
  await close();
});

async function everyChart(page) {
  for (const id of await page.locator('figure.panel').evaluateAll((panels) => panels.map((panel) => panel.id))) await drawn(page, id);
}

/** Runs in the page: texts of charts that overlap others, or are not within their chart. */
function collisions() {
  const found = [];
  for (const svg of document.querySelectorAll('.canvas svg')) {
    const frame = svg.getBoundingClientRect();
    const id = svg.closest('figure').id;
    const boxes = [...svg.querySelectorAll('text')].map((text) => ({ text: text.textContent.slice(0, 40), box: text.getBoundingClientRect() }));
    boxes.forEach(({ text, box }, index) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) found.push(`${id}: ${text} leaves the chart`);
      for (const other of boxes.slice(index + 1)) {
        const across = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const down = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        // Boxes contain the room above and below letters.
        if (across > 1 && down > 4) found.push(`${id}: ${text} over ${other.text}`);
      }
    });
  }
  return found;
}

/** Colours as people see them (Machado, Oliveira and Fernandes, 2009). */
const VISION = {
  normal: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};

function linear(color) {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
}

function luminance([r, g, b]) {
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function seen(matrix, color) {
  const rgb = linear(color);
  return [0, 3, 6].map((row) => Math.min(1, Math.max(0, rgb.reduce((sum, part, index) => sum + part * matrix[row + index], 0))));
}

function lab([r, g, b]) {
  const root = (part) => (part > 0.008856 ? Math.cbrt(part) : 7.787 * part + 16 / 116);
  const [x, y, z] = [root((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505), root(luminance([r, g, b])), root((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function distance(one, other) {
  return Math.hypot(...one.map((part, index) => part - other[index]));
}
