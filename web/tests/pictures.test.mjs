// Pictures of the documents are legible: no text overlaps another one, is shortened, or leaves the picture.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { close, launch, open } from './browser.mjs';

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url));
const pictures = readdirSync(folder).sort();

/** Boxes may share this many pixels: room around the letters. Characters of frames come from another font, which is wider. */
const shared = { across: 2, down: 4 };

before(launch);
after(close);

/** Size of the picture, and the boxes of its texts and shapes in pixels. */
function measured(root) {
  const box = (element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left, right, top, bottom, text: element.textContent || element.tagName };
  };
  const boxes = (selector) => [...root.querySelectorAll(selector)].map(box);
  return { size: box(root), texts: boxes('text'), shapes: boxes('rect, circle, polyline, polygon') };
}

describe('pictures of the documents', () => {
  test('each exists for both themes', () => {
    assert.ok(pictures.length > 0);
    for (const name of pictures) {
      assert.match(name, /^[a-z-]+-(light|dark)\.svg$/);
      const other = name.endsWith('-light.svg') ? name.replace('-light.', '-dark.') : name.replace('-dark.', '-light.');
      assert.ok(pictures.includes(other), `${other} is missing`);
    }
  });

  for (const name of pictures) {
    test(`${name} is legible`, async () => {
      const { page, trouble, close } = await open(folder + name);
      const { size, texts, shapes } = await page.locator('svg').evaluate(measured);
      assert.ok(texts.length > 5, `${texts.length} texts`);
      for (const one of [...texts, ...shapes]) {
        const inside = one.left >= size.left && one.right <= size.right && one.top >= size.top && one.bottom <= size.bottom;
        assert.ok(inside, `${one.text} leaves the picture`);
      }
      texts.forEach((one, index) => {
        assert.ok(!one.text.includes('…'), `${one.text} is shortened`);
        for (const other of texts.slice(index + 1)) {
          const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
          const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
          assert.ok(across <= shared.across || down <= shared.down, `${one.text} overlaps ${other.text}`);
        }
      });
      assert.deepEqual(trouble, []);
      await close();
    });

    test(`${name} loads nothing`, () => {
      const svg = readFileSync(folder + name, 'utf8');
      assert.doesNotMatch(svg, /<script|<image|href=|url\(/);
    });
  }
});
