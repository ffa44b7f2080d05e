// Size and layout of reports in a real browser: bytes, screens, paper, texts that overlap, labels from outside.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { altered, close, documentOf, drawn, files, iosonde, launch, open, read, report, tableBehind, temporary, unfoldAll } from './browser.mjs';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** Names and their list: the tests of the program read them too. */
const LISTS = new URL('../../crates/report/src/listed_names.json', import.meta.url);
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
  made.doubted = altered(made.probe, 'layout-doubted', doubtEachRun);
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
  const plain = await open(temporary('layout-devices.html'), { javaScriptEnabled: false });
  const text = await plain.page.locator('noscript h1 + p').innerText();
  assert.ok(text.includes(hosts[0].hostname) && text.includes(hosts[0].kernel) && /\d{4}-\d\d-\d\d/.test(text), text);
  await plain.close();
});

test('devices are hidden while a run without any is selected', async () => {
  const tracks = [{ group: 'busy', name: '%util', unit: 'percent', values: [1, 2] }];
  const path = altered(made.probe, 'layout-simulated', ({ runs }) => {
    const shown = runs.filter((run) => run.series.length > 0 && !run.preparation);
    shown[1].series.push({ of: 'sda', at_s: [0, 1], end_s: 2, ramp: 0, tracks });
  });
  const { page, close } = await open(path);
  const panel = await drawn(page, 'timeline');
  const devices = page.locator('#devices');
  for (const [run, isVisible] of [['0', false], ['1', true], ['0', false]]) {
    await panel.locator('select').selectOption(run);
    assert.equal(await devices.isVisible(), isVisible, run);
  }
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

test('a probe prints on at most three pages, also with findings on each run', async () => {
  for (const name of ['probe', 'doubted']) {
    const { page, close } = await open(made[name]);
    const pdf = (await page.pdf({ preferCSSPageSize: true })).toString('latin1');
    const pages = pdf.match(/\/Type\s*\/Page\b(?!s)/g).length;
    assert.ok(pages <= 3, `${name}: ${pages} pages`);
    await close();
  }
});

test('paper opens or names all details of the summary', async () => {
  const path = altered(made.seven, 'layout-folds', ({ runs, studies }) => {
    runs.forEach((run) => (run.verdicts = [{ kind: 'steal', evidence: 'the hypervisor gave CPU time away' }]));
    studies.forEach((study) => (study.ceilings = ['the first limit', 'the second limit']));
  });
  const { page, close } = await open(path);
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  assert.ok((await page.locator('#summary details details[open]').count()) >= 5, 'limits of each study');
  const rest = await page.locator('.left-out').textContent();
  assert.ok(rest.includes('the runs of each finding'), rest);
  const names = await page.locator('main details:not([open])').evaluateAll((all) =>
    all
      .filter((details) => !details.closest('.behind') && !details.matches('.findings li > details') && !details.parentElement.closest('details:not([open])'))
      .map((details) => details.querySelector('summary').textContent),
  );
  assert.ok(names.length >= 2, `${names}`);
  assert.deepEqual(names.filter((name) => !rest.includes(name)), [], rest);
  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  assert.equal(await page.locator('#summary details[open]').count(), 0, 'as before');
  await close();
});

test('comparison of seven results is whole on a small desktop', async () => {
  const { page, close } = await open(made.seven, { viewport: { width: 1280, height: 900 } });
  const [room, wide] = await page.locator('.scroll:has(.compared)').evaluate((box) => [box.clientWidth, box.scrollWidth]);
  assert.ok(wide <= room, `${wide} px in ${room} px`);
  await close();
});

test('results of one target are told apart by times that no line breaks', async () => {
  const path = altered(made.probe, 'layout-times', (document) => {
    const again = document.runs.map((run) => ({ ...run, source: 'again', started_at_ms: 1_700_000_000_000 }));
    document.runs.forEach((run) => (run.started_at_ms = 1_600_000_000_000));
    document.runs.push(...again);
  });
  for (const width of [400, 1280]) {
    const { page, close } = await open(path, { viewport: { width, height: 800 } });
    const names = await page.locator('.compared tbody th').allTextContents();
    assert.deepEqual(names, ['sim:nvme, 2020-09-13 12:26:40 UTC', 'sim:nvme, 2023-11-14 22:13:20 UTC']);
    const lines = await page.locator('.compared tbody th .whole').evaluateAll((all) => all.map((part) => part.getClientRects().length));
    assert.deepEqual(lines, [1, 1, 1, 1]);
    await close();
  }
});

test('paper has figures, maximum and machines, and names the rest', async () => {
  const { page, trouble, close } = await open(made.probe);
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  await page.emulateMedia({ media: 'print' });
  for (const part of ['#figures .headline tbody tr', '#knees li', '#conditions .card']) assert.ok((await page.locator(`${part}:visible`).count()) > 0, part);
  for (const part of ['#figures .panel', '.choices', '.tools', '#plans pre']) assert.equal(await page.locator(`${part}:visible`).count(), 0, part);
  const rest = await page.locator('.left-out').innerText();
  for (const title of ['Plans', 'Runs', 'Histogram of latency', 'a table of each chart']) assert.ok(rest.includes(title), rest);
  await page.emulateMedia({ media: 'screen' });
  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  assert.equal(await page.locator('#figures > details[open], .left-out:visible').count(), 0, 'as before');
  assert.deepEqual(trouble, []);
  await close();
});

test('paper has the whole table of many figures, and no text over another', async () => {
  const { page, close } = await open(made.seven, { viewport: { width: 718, height: 1040 } });
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  await page.emulateMedia({ media: 'print' });
  const tall = page.locator('.scroll.tall');
  assert.equal(await tall.evaluate((box) => getComputedStyle(box).maxHeight), 'none');
  const [room, high] = await tall.evaluate((box) => [box.clientHeight, box.scrollHeight]);
  assert.ok(high <= room, `${high} px in ${room} px`);
  assert.deepEqual(await page.evaluate(overprinted), []);
  await close();
});

test('details that the reader has opened stay open and are printed whole', async () => {
  const { page, close } = await open(made.probe);
  await unfoldAll(page);
  await everyChart(page);
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.locator('#figures .panel:visible').count(), 2);
  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  assert.equal(await page.locator('#figures > details[open]').count(), 1);
  await close();
});

test('table that is wider than a phone has a light shade at the edge', async () => {
  const { page, close } = await open(made.seven, { viewport: { width: 400, height: 800 } });
  const table = page.locator('.scroll:has(.compared)');
  const [room, wide, style] = await table.evaluate((box) => {
    const { backgroundAttachment, backgroundSize, backgroundImage } = getComputedStyle(box);
    return [box.clientWidth, box.scrollWidth, { backgroundAttachment, backgroundSize, backgroundImage }];
  });
  assert.ok(wide > room, 'nothing is tested');
  assert.match(style.backgroundAttachment, /local, local, scroll, scroll/);
  assert.match(style.backgroundSize, /8px 100%, 8px 100%/);
  const opacities = [...style.backgroundImage.matchAll(/rgba\(\d+, \d+, \d+, (0\.\d+)\)/g)].map(([, opacity]) => Number(opacity));
  assert.ok(opacities.length > 0 && opacities.every((opacity) => opacity < 0.2), `${style.backgroundImage}`);
  // The name of a row stays while its figures scroll.
  const name = page.locator('.compared tbody th').first();
  const before = await name.boundingBox();
  const caption = page.locator('.compared caption > span');
  assert.match(await caption.innerText(), /~: interval not known/);
  await page.locator('.scroll:has(.compared)').evaluate((box) => box.scrollTo(200, 0));
  const { x, width } = await caption.boundingBox();
  assert.ok(x >= 0 && x + width <= 400, `caption from ${x} to ${x + width}`);
  assert.ok(Math.abs((await name.boundingBox()).x - before.x) < 2);
  await close();
});

test('contents of a phone are in lines without cut words', async () => {
  const { page, close } = await open(made.seven, { viewport: { width: 400, height: 800 } });
  const [room, wide] = await page.locator('nav').evaluate((box) => [box.clientWidth, box.scrollWidth]);
  assert.equal(wide, room);
  await close();
});

test('header tells simulated targets from those of the host', async () => {
  const header = async (path) => {
    const { page, close } = await open(path);
    const text = await page.locator('header p').innerText();
    await close();
    return text;
  };
  assert.doesNotMatch(await header(made.probe), /targets simulated/);
  // An imported result may have no time and no host.
  for (const [time, host] of [0, 1_700_000_000_000].flatMap((time) => [[time, 0], [time, null]])) {
    const mixed = altered(made.seven, 'layout-mixed', (document) => {
      const { place } = document.runs.find((run) => !run.of_grid && !run.preparation);
      for (const run of document.runs) if (run.place === place) Object.assign(run, { place: '/dev/vdb', host, started_at_ms: time });
      document.hosts = [{ architecture: 'x86_64', hostname: 'storage-1', kernel: '6.1.0' }];
    });
    const text = await header(mixed);
    // The targets of five probes, of a sweep and of a load study.
    assert.match(text, host === null ? /^6 of 7 targets simulated · storage-1 · / : /^6 of 7 targets simulated, the other on storage-1 · /);
    assert.equal(text.includes('2023-11-14'), time > 0, text);
    assert.doesNotMatch(text, / · simulated/);
  }
});

test('header without scripts says the same, but for the number of runs', async () => {
  for (const name of ['probe', 'seven', 'twice']) {
    const { page, close } = await open(made[name]);
    const about = await page.locator('header p').innerText();
    await close();
    const plain = await open(made[name], { javaScriptEnabled: false });
    const text = await plain.page.locator('noscript h1 + p').innerText();
    await plain.close();
    assert.match(about.replace(text, ''), /^ · \d+ runs?$/, `${name}: ${text}`);
  }
});

test('header names each host once, and counts those beyond the third', async () => {
  const { page, show, close } = await open();
  let pages = 0;
  const header = async (names, cpus = []) => {
    const path = altered(made.probe, `layout-hosts-${pages++}`, (document) => {
      const cpuOf = (index) => ({ model: 'a processor', online: cpus[index] ?? 4 });
      document.hosts = names.map((hostname, index) => ({ architecture: 'x86_64', hostname, kernel: `6.${index % 2}.0`, cpu: cpuOf(index), memory_bytes: 8e9 + index }));
    });
    await show(path);
    return page.locator('header p').innerText();
  };
  assert.match(await header(['storage-1', 'storage-1']), /^storage-1 · Linux 6\.0\.0; Linux 6\.1\.0 · /);
  assert.match(await header(['a', 'b', 'c']), /^a; b; c · /);
  for (const [names, list] of JSON.parse(readFileSync(LISTS, 'utf8'))) assert.ok((await header(names)).startsWith(`${list} · `), list);
  assert.match(await header(['localhost', 'localhost'], [4, 8]), /^2 hosts · /);
  assert.match(await header(['a', null]), /^2 hosts · /);
  assert.match(await header([null]), /^1 host · /);
  await close();
});

test('header names a device with a comma as one device', async () => {
  const path = altered(made.probe, 'layout-comma', (document) => {
    document.targets = [[{ devices: [{ name: 'volume, old', model: 'Disk 1' }], mount: { fs_type: 'ext4', source: '/dev/vda' } }]];
  });
  const { page, close } = await open(path);
  const text = await page.locator('header p').innerText();
  assert.ok(text.includes('volume, old (Disk 1), ext4'), text);
  await close();
});

test('header counts a simulated sweep without its single runs', async () => {
  const [like] = documentOf(made.sweep).sweeps;
  const path = altered(made.probe, 'layout-without-runs', (document) => {
    document.hosts = [{ architecture: 'x86_64', hostname: 'storage-1' }];
    document.sweeps = [{ ...like, source: 'sweep.json', target: 'sim:hdd, 4k' }];
    for (const run of document.runs) Object.assign(run, { place: '/dev/vdb', started_at_ms: 1, host: 0 });
  });
  const { page, close } = await open(path);
  assert.match(await page.locator('header p').innerText(), /^1 of 2 targets simulated, the other on storage-1 · /);
  await close();
});

test('strip with more than six lines has a legend in place of names at the lines', async () => {
  const path = altered(made.sweep, 'layout-eight', ({ sweeps: [sweep] }) => {
    const sizes = Array.from({ length: 8 }, (_, index) => `${index + 1}k`);
    const at = sweep.axes.findIndex(({ name }) => name === 'bs');
    const [like] = sweep.curves;
    const curves = sweep.curves.filter(({ values }) => values[at] === like.values[at]);
    sweep.axes[at].values = sizes;
    sweep.curves = curves.flatMap((curve) => sizes.map((size) => ({ ...curve, block_bytes: 1024, values: curve.values.with(at, size) })));
  });
  const { page, close } = await open(path, { viewport: { width: 1440, height: 900 } });
  const panel = await drawn(page, 'sweep-0-curves-0');
  assert.ok(await panel.locator('.legend').isVisible());
  const styles = await panel.locator('.legend button path').evaluateAll((all) => all.map((line) => `${line.getAttribute('stroke')} ${line.getAttribute('stroke-dasharray')}`));
  assert.deepEqual([styles.length, new Set(styles).size], [8, 8], `${styles}`);
  assert.deepEqual(await page.evaluate(collisions), []);
  await close();
});

test('two sweeps of one target have names of their own', async () => {
  const path = altered(made.sweep, 'layout-again', (document) => {
    const again = { source: 'again', headline: 'again' };
    document.runs.push(...document.runs.map((run) => ({ ...run, source: 'again', elapsed_ns: run.elapsed_ns + 1 })));
    document.sweeps.push({ ...document.sweeps[0], ...again });
  });
  assert.ok(documentOf(path).runs.length > 0);
  const { page, close } = await open(path);
  const titles = (await page.locator('main > section h2').allInnerTexts()).filter((title) => title.startsWith('Sweep'));
  assert.deepEqual([titles.length, new Set(titles).size], [2, 2], `${titles}`);
  await close();
});

test('percentiles of a probe are of its main workloads, and the others are named', async () => {
  const { page, close } = await open(made.probe);
  const panel = await drawn(page, 'percentiles');
  const { head } = await tableBehind(panel);
  for (const name of ['random read', 'random write', 'sequential read', 'sequential write']) assert.ok(head.includes(name), `${name}: ${head}`);
  const note = await panel.locator('.note').innerText();
  assert.match(note, /^Not drawn: .*fdatasync · write/);
  await close();
  const renamed = (run) => ({ ...run, figures: run.figures.map((figure) => ({ ...figure, job: `other ${figure.job ?? run.name}` })) });
  const repeated = await open(altered(made.probe, 'layout-repeated', ({ runs }) => runs.push(...runs.map(renamed))));
  const listed = await (await drawn(repeated.page, 'percentiles')).locator('.note').innerText();
  assert.match(listed, /^Not drawn: [^;]+; [^;]+; [^;]+ and \d+ more\. The section Figures draws any row\.$/);
  await repeated.close();
});

/** Labels of the percentile axis of a probe whose runs have at most `count` I/Os each. */
async function ninesOf(count, width) {
  const path = altered(made.probe, 'layout-nines', ({ runs }) => {
    for (const { latency } of runs.flatMap((run) => run.figures)) latency.count = Math.min(latency.count, count);
  });
  const { page, close } = await open(path, { viewport: { width, height: 900 } });
  const panel = await drawn(page, 'percentiles');
  const texts = await panel.locator('.canvas svg text').allTextContents();
  await close();
  return texts.filter((text) => /^(0|90|99(\.9+)?)$/.test(text));
}

test('axis of percentiles keeps all its labels on a phone', async () => {
  assert.deepEqual(await ninesOf(50_000, 400), ['0', '90', '99', '99.9', '99.99']);
});

test('axis of percentiles names the first and the last measured nine', async () => {
  const most = Math.max(...documentOf(made.probe).runs.flatMap((run) => run.figures.map(({ latency }) => latency.count)));
  const powers = Math.floor(Math.log10(most));
  assert.ok(powers >= 5, `${most} I/Os`);
  const last = `99.${'9'.repeat(powers - 2)}`;
  for (const width of [400, 900, 1440]) {
    const ticks = await ninesOf(Infinity, width);
    assert.deepEqual([ticks[0], ticks.at(-1)], ['0', last], `${ticks} at ${width} px`);
  }
});

test('axe finds no violation, in light and dark', async () => {
  for (const name of ['probe', 'seven']) {
    for (const colorScheme of ['light', 'dark']) {
      const { page, close } = await open(made[name], { colorScheme });
      await unfoldAll(page);
      await everyChart(page);
      // Axe measures no contrast on gradients.
      await page.addStyleTag({ content: 'nav, .scroll { background: var(--cover) !important } .compared td { background: none !important }' });
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
      const path = report('hostile', ...paths, '--title', 'stays');
      for (const width of [400, 1280]) {
        const { page, trouble, close } = await open(path, { viewport: { width, height: 800 } });
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

/** Gives each run a finding in words of its own, and the report a machine. */
function doubtEachRun(document) {
  const kinds = ['steal', 'throttled', 'interference', 'device', 'clock_disturbed', 'unsteady', 'network', 'stopped'];
  document.runs.forEach((run, index) => {
    const part = String.fromCharCode(97 + (index % 26));
    const evidence = `in part ${part} other virtual machines took 26 % of the CPU time, so that latencies may be too high and rates too low`;
    run.verdicts = [{ kind: kinds[index % kinds.length], evidence }];
  });
  const facts = ['os', 'cpu', 'memory', 'swap', 'clock source', 'platform', 'cgroup', 'governor', 'turbo', 'mitigations'];
  document.hosts = [{ hostname: 'storage-1', architecture: 'x86_64', kernel: '6.1.0', ...Object.fromEntries(facts.map((name) => [name, `${name} of the machine`])) }];
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

/** Runs in the page: visible texts that overlap others. */
function overprinted() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const boxes = [];
  while (walker.nextNode()) {
    const { currentNode: node } = walker;
    const { parentElement: around } = node;
    if (node.textContent.trim() === '' || around.closest('.unseen') || !around.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) boxes.push({ text: node.textContent.trim().slice(0, 40), box });
  }
  return boxes.flatMap(({ text, box }, index) =>
    boxes.slice(index + 1).flatMap((other) => {
      const across = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
      const down = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
      return across > 1 && down > 4 ? [`${text} over ${other.text}`] : [];
    }),
  );
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
