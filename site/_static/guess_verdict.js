// What is said about a guess, as the lessons say it: exercises/framework/prediction.py, on the data of site/predictions.json.
const close = (a, b, relTol, least = 0) => Math.abs(a - b) <= Math.max(relTol * Math.max(Math.abs(a), Math.abs(b)), least);
const significant = (value, digits) => Number(value.toPrecision(digits));
const amount = (value) =>
  (Math.abs(value) >= 1e4 ? Math.round(value) : significant(value, 5)).toLocaleString("en-US", { maximumFractionDigits: 9 });
const ended = (line) => (line.endsWith("?") ? line : `${line}.`);

// A number as people type it: 1,024 or 1e6 or 3/4, and 2,5 where a comma groups no thousands. NaN where it is none.
const typed = (text) => {
  const grouped = /^\s*-?\d{1,3}(,\d{3})+(?!\d)/;
  const one = (part) => (part.trim() ? Number(grouped.test(part) ? part.replaceAll(",", "") : part.replace(",", ".")) : NaN);
  const parts = String(text).split("/").map(one);
  const value = parts.length > 2 ? NaN : parts.reduce((a, b) => a / b);
  return Number.isFinite(value) ? value : NaN;
};

// One reading of a guess: { right, said }, with `unread` if it isn't a number. A word is one of the answers in a list.
window.reading = ({ answer, reason, mistakes, unit, relTol, answers }, text) => {
  const said = answers ? text : typed(text);
  if (Number.isNaN(said)) return { right: false, unread: true, said: `Your guess is ${text}; expected a number${unit && ` of ${unit}`}.` };
  const shown = (value) => (answers ? value : `${amount(value)} ${value === 1 ? unit.replace(/s$/, "") : unit}`.trimEnd());
  const same = (one, off, least) => (answers ? one === said : close(one, said, off, least));
  if (same(answer, relTol, 1e-9)) return { right: true, said: `Your guess, ${shown(said)}: right.` };
  const words = mistakes.find(([mistake]) => same(mistake, Math.max(relTol, 1e-2)))?.[1] || reason;
  const [low, high] = [Math.min(said, answer), Math.max(said, answer)]; // of words, NaN
  const off = ` (${significant(high / low, 4)} times too ${said > answer ? "large" : "small"})`;
  const line = `Your guess, ${shown(said)}, should be ${shown(answer)}${unit && low > 0 && high >= 2 * low ? off : ""}`;
  return { right: false, said: ended(`${line}${words && ": "}${words}`) };
};
