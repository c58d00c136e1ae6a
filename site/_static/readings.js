// What is said about a guess, as the lessons say it: utils/exercises/prediction.py, choice.py and slips.py, on the data of
// site/predictions.json. The site's tests hold both against one table.
const close = (a, b, within, least = 0) => Math.abs(a - b) <= Math.max(within * Math.max(Math.abs(a), Math.abs(b)), least);
const significant = (value, digits) => Number(value.toPrecision(digits));
const amount = (value) =>
  (Math.abs(value) >= 1e4 ? Math.round(value) : significant(value, 5)).toLocaleString("en-US", { maximumFractionDigits: 9 });
const ended = (line) => (line.endsWith("?") ? line : `${line}.`);
const once = (all) => [...new Set(all)];

// A number as people type it: 1,024 or 1e6 or 3/4, and 2,5 where a comma groups no thousands. NaN where it is none.
const typed = (text) => {
  const grouped = /^\s*-?\d{1,3}(,\d{3})+(?!\d)/;
  const one = (part) => (part.trim() ? Number(grouped.test(part) ? part.replaceAll(",", "") : part.replace(",", ".")) : NaN);
  const parts = String(text).split("/").map(one);
  const value = parts.length > 2 ? NaN : parts.reduce((a, b) => a / b);
  return Number.isFinite(value) ? value : NaN;
};

const offBy = (said, want) => {
  const [high, low] = [Math.max(said, want), Math.min(said, want)];
  return `${low > 0 ? `${significant(high / low, 4)} times ` : ""}too ${said > want ? "large" : "small"}`;
};

// The words of the factors that explain a wrong number, alone or two at once, or "".
const factors = (said, truth, slips, within) => {
  const explains = (chosen) => close(said, chosen.reduce((value, [factor]) => value * factor, truth || 1), within);
  const singles = slips.filter((slip) => explains([slip])).map(([, words]) => words);
  if (singles.length || within >= 0.1) return singles.slice(0, 2).join("; or: ");
  const pairs = slips.flatMap((first, i) => slips.slice(i + 1).map((second) => [first, second]));
  const short = ([, words]) => words.split(/[:;] /)[0];
  const found = pairs.filter((pair) => pair[0][1] !== pair[1][1] && explains(pair));
  return found.map((pair) => once(pair.map(short)).join(", and ")).slice(0, 2).join("; or: ");
};

const readNumber = (asked, text, truth, own) => {
  const said = typed(text);
  if (Number.isNaN(said)) return { right: false, said: ` is ${text}; expected one number${asked.unit && `, of ${asked.unit}`}.` };
  const unit = said === 1 ? asked.unit.replace(/s$/, "") : asked.unit;
  const shown = `, ${amount(said)} ${unit}`.trimEnd();
  if (close(said, truth, asked.within, 1e-9)) return { right: true, said: `${shown}: right.` };
  const all = [...new Map([...asked.slips, ...own]).entries()];
  const otherwise = all.find(([key]) => key === null)?.[1] ?? "";
  const slips = all.filter(([key]) => key !== null);
  const words =
    (asked.things ? slips.find(([key]) => key === said)?.[1] : factors(said, truth, slips, asked.within)) || otherwise;
  const off = asked.ranks || asked.things ? `should be ${amount(truth)}` : `is ${offBy(said, truth)}`;
  return { right: false, said: ended(`${shown}, ${off}${words && ": "}${words}`) };
};

// Capitals, spaces and the difference between 4 and 4.0 do not count.
const bare = (answer) =>
  answer.trim() && !Number.isNaN(Number(answer)) ? String(significant(Number(answer), 6)) : answer.toLowerCase().replace(/\s/g, "");

const readWord = (asked, text, truth, own) => {
  const words = [...new Map([...asked.words, ...own]).entries()];
  const given = (said) => words.find(([answer]) => bare(answer) === bare(said));
  const [answer, why] = given(text) ?? [text, ""];
  if (bare(text) === bare(truth)) return { right: true, said: `, ${answer}: right.` };
  return { right: false, said: ended(`, ${answer}, is not so: it is ${given(truth)?.[0] ?? truth}${why && ": "}${why}`) };
};

// The one kit's predictions, as exercises/kit/prediction.py reads them.
const readPlain = ({ truth: [truth], why, slips, unit, within, words: choices }, text) => {
  const number = !choices;
  const one = (answer) => (number ? typed(answer) : answer.trim().toLowerCase().replace(/\s+/g, " ").replaceAll(", ", ","));
  const [said, right] = [one(text), one(truth)];
  const answers = ["yes", "no"].includes(right) ? ["yes", "no"] : once([right, ...slips.map(([slip]) => one(slip))]).sort();
  if (number ? Number.isNaN(said) : !answers.includes(said)) {
    const expected = number ? `a number${unit && ` of ${unit}`}` : answers.join(" or ");
    return { right: false, said: ` is ${text}; expected ${expected}.` };
  }
  const shown = (value) => (number ? `${amount(value)} ${value === 1 ? unit.replace(/s$/, "") : unit}`.trimEnd() : value);
  if (number ? close(said, right, within, 1e-9) : said === right) return { right: true, said: `, ${shown(said)}: right.` };
  const near = ([slip]) => (number ? close(Number(slip), said, Math.max(within, 1e-2)) : one(slip) === said);
  const words = slips.find(near)?.[1] || why;
  const twice = number && unit && Math.min(said, right) > 0 && Math.max(said, right) >= 2 * Math.min(said, right);
  const line = `, ${shown(said)}, should be ${shown(right)}${twice ? ` (${offBy(said, right)})` : ""}`;
  return { right: false, said: ended(`${line}${words && ": "}${words}`) };
};

// One reading for each guess that is not empty: { right, said }.
window.readings = (asked, guesses) =>
  guesses.flatMap((text, i) => {
    if (!text.trim()) return [];
    if (asked.plain) {
      const { right, said } = readPlain(asked, text);
      return [{ right, said: `Your guess${said}` }];
    }
    const own = asked.own[asked.labels?.[i]] ?? [];
    const { right, said } = (asked.words ? readWord : readNumber)(asked, text, asked.truth[i], own);
    return [{ right, said: asked.labels ? `${asked.labels[i]}: your guess${said}` : `Your guess${said}` }];
  });
