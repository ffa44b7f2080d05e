// Widths of texts in charts.

let context: CanvasRenderingContext2D | null | undefined;
const widths = new Map<string, number>();

/** Width of a text in a chart, in pixels. */
export function textWidth(text: string | undefined): number {
  if (!text) return 0;
  const known = widths.get(text);
  if (known !== undefined) return known;
  if (context === undefined) {
    context = document.createElement('canvas').getContext('2d');
    if (context) context.font = '12px system-ui, sans-serif';
  }
  const width = context?.measureText(text).width ?? text.length * 7;
  widths.set(text, width);
  return width;
}

/** Shortens a text in the middle to a width in pixels, as names mostly differ at the end. */
export function capped(text: string, room: number): string {
  if (textWidth(text) <= room) return text;
  let most = Math.max(2, Math.floor((text.length * room) / textWidth(text)));
  const cut = () => {
    const head = Math.floor((most - 1) / 3);
    return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
  };
  while (most > 2 && textWidth(cut()) > room) most -= 1;
  return cut();
}

/** Breaks a text into lines of a width in pixels. A word that is wider is shortened. */
export function wrapped(text: string, room: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ').filter((each) => each !== '')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`.trim();
    if (lines.length > 0 && textWidth(longer) <= room) lines[lines.length - 1] = longer;
    else lines.push(capped(word, room));
  }
  return lines;
}
