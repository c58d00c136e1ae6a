// Look up problems in parallel JAX, as find_old_jax/problem_index.py does. tools/site/problems_page.py provides the data, and the
// site's tests compare the results.
window.problems = (data) => {
  const common = new Set(data.common);
  const suffixes = new RegExp(data.suffixes);
  const doubled = new RegExp(data.doubled);
  const synonyms = new Map(Object.entries(data.synonyms));

  const shorten = (word) => {
    const short = word.replace(suffixes, "");
    return short === word ? short : short.replace(doubled, "$1");
  };

  const stem = (text, parts = false) => {
    const names = text.toLowerCase().replaceAll("re-", "re").match(/[a-z0-9]+(?:_[a-z0-9]+)*/g) ?? [];
    const words = names.flatMap((name) => (parts ? [...new Set([name, ...name.split("_")])] : [name]));
    const stems = words.filter((word) => !common.has(word)).map(shorten);
    return stems.map((one) => synonyms.get(one) ?? one);
  };
  const stems = (text) => [...new Set(stem(text, true))];

  // Map each problem to the weights of the words that it contains.
  const weights = new Map(
    data.problems.map((problem) => {
      const found = new Map();
      for (const [field, weight] of Object.entries(data.weights)) {
        for (const word of stems([problem[field]].flat().join(" "))) found.set(word, Math.max(found.get(word) ?? 0, weight));
      }
      return [problem, found];
    }),
  );

  const matchedLength = (pattern, message) => {
    const parts = pattern.toLowerCase().split(data.wildcard);
    return parts.every((part) => message.includes(part)) ? parts.reduce((sum, part) => sum + part.length, 0) : 0;
  };

  // Return the problems whose messages occur in a text, with the longest match first.
  const byMessage = (text) => {
    const message = text.split(/\s+/).join(" ").trim().toLowerCase();
    return data.problems
      .map((problem) => [problem, Math.max(0, ...problem.messages.map((pattern) => matchedLength(pattern, message)))])
      .filter(([, length]) => length)
      .sort((a, b) => b[1] - a[1])
      .map(([problem]) => problem);
  };

  // Return the fraction of a pattern's words that a text's words contain in the same order, or 0 if less than half.
  const looseMatch = (pattern, words) => {
    const expected = stem(pattern);
    let matched = 0;
    let start = 0;
    for (const word of expected) {
      const index = words.indexOf(word, start);
      if (index < 0) continue;
      start = index + 1;
      matched += 1;
    }
    return expected.length > 1 && 2 * matched >= expected.length ? matched / expected.length : 0;
  };

  const total = (words) => [...words.values()].reduce((sum, weight) => sum + weight, 0);
  const average = [...weights.values()].reduce((sum, words) => sum + total(words), 0) / weights.size;

  // Return the problems that best fit a query.
  const search = (query, limit = 3) => {
    const scores = new Map();
    for (const word of stems(query)) {
      const found = [];
      for (const [problem, words] of weights) {
        let weight = words.get(word) ?? 0;
        if (!weight && word.length >= 4) {
          for (const [other, one] of words) if (other.startsWith(word)) weight = Math.max(weight, one / 2);
        }
        if (weight) found.push([problem, weight]);
      }
      const rarity = Math.log(1 + data.problems.length / found.length);
      for (const [problem, weight] of found) scores.set(problem, (scores.get(problem) ?? 0) + weight * rarity);
    }
    const inOrder = stem(query);
    for (const [problem, score] of scores) {
      const bonus = Math.max(0, ...problem.messages.map((pattern) => looseMatch(pattern, inOrder)));
      const length = total(weights.get(problem)) / average;
      scores.set(problem, (score * (1 + bonus)) / (1 - data.lengthPenalty + data.lengthPenalty * length));
    }
    const place = (problem) => data.problems.indexOf(problem);
    const byScore = [...scores].sort((a, b) => b[1] - a[1] || place(a[0]) - place(b[0])).map(([problem]) => problem);
    return [...new Set([...byMessage(query), ...byScore])].slice(0, limit);
  };

  return { stems, byMessage, search };
};

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("problem-search");
  if (!form) return;
  const { search } = window.problems(JSON.parse(document.getElementById("problems-data").textContent));
  const box = form.querySelector("textarea");
  const status = form.querySelector("[role=status]");
  const found = document.getElementById("problems-found");
  const topics = [...document.querySelectorAll("section > section")].filter((one) => one.querySelector(":scope > h2"));
  form.hidden = false;

  // Copy an entry, without its ids, which must stay unique.
  const copy = (problem) => {
    const entry = document.getElementById(`problem-${problem.id}`).closest("section").cloneNode(true);
    for (const one of [entry, ...entry.querySelectorAll("[id]")]) one.removeAttribute("id");
    for (const one of entry.querySelectorAll(".headerlink, .copybtn")) one.remove();
    return entry;
  };

  const show = () => {
    const asked = box.value.trim();
    const results = asked ? search(asked, 5) : [];
    found.replaceChildren(...results.map(copy));
    for (const topic of topics) topic.hidden = results.length > 0;
    if (!asked) status.textContent = "";
    else if (!results.length) status.textContent = "No entry has these words. Below are all entries.";
    else status.textContent = results.length === 1 ? "One entry:" : `The ${results.length} closest entries, the best first:`;
  };
  let waiting;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 150);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  // A link in the table of contents ends the search, because its target is hidden.
  addEventListener("hashchange", () => {
    if (!box.value) return;
    box.value = "";
    show();
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  });
  if (box.value) show(); // the browser may have restored the text
});
