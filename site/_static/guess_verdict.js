// Judge a guess and explain it, as exercises/framework/prediction.py does in notebooks. The data is site/predictions.json.
const close = (a, b, relTol, least = 0) => Math.abs(a - b) <= Math.max(relTol * Math.max(Math.abs(a), Math.abs(b)), least);
const significant = (value, digits) => Number(value.toPrecision(digits));
const amount = (value) =>
  (Math.abs(value) >= 1e4 ? Math.round(value) : significant(value, 5)).toLocaleString("en-US", { maximumFractionDigits: 9 });
const endSentence = (line) => (line.endsWith("?") ? line : `${line}.`);

// Parse a number as people type it: 1,024 or 1e6 or 3/4, or 2,5 with a decimal comma. Return NaN for any other text.
const parseNumber = (text) => {
  const grouped = /^\s*-?\d{1,3}(,\d{3})+(?!\d)/;
  const one = (part) => (part.trim() ? Number(grouped.test(part) ? part.replaceAll(",", "") : part.replace(",", ".")) : NaN);
  const parts = String(text).split("/").map(one);
  const value = parts.length > 2 ? NaN : parts.reduce((a, b) => a / b);
  return Number.isFinite(value) ? value : NaN;
};

// Return the verdict on a guess: { right, message }, with `invalid` if it should be a number and isn't. If the answer is a
// word, the guess is one of `answers`.
window.guessVerdict = ({ answer, reason, mistakes, unit, rel_tol: relTol, answers }, text) => {
  const guess = answers ? text : parseNumber(text);
  if (Number.isNaN(guess)) return { right: false, invalid: true, message: `Your guess is ${text}; expected a number${unit && ` of ${unit}`}.` };
  const shown = (value) => (answers ? value : `${amount(value)} ${value === 1 ? unit.replace(/s$/, "") : unit}`.trimEnd());
  const same = (one, off, least) => (answers ? one === guess : close(one, guess, off, least));
  if (same(answer, relTol, 1e-9)) return { right: true, message: `Your guess, ${shown(guess)}: right.` };
  const words = mistakes.find(([mistake]) => same(mistake, Math.max(relTol, 1e-2)))?.[1] || reason;
  const [low, high] = [Math.min(guess, answer), Math.max(guess, answer)]; // NaN for words
  const off = ` (${significant(high / low, 4)} times too ${guess > answer ? "large" : "small"})`;
  const line = `Your guess, ${shown(guess)}, should be ${shown(answer)}${unit && low > 0 && high >= 2 * low ? off : ""}`;
  return { right: false, message: endSentence(`${line}${words && ": "}${words}`) };
};
