// Search while the reader types, in the dialog and on the search page. The entries of the problem index that fit come first,
// found by problems.js in problems.json. Then come the pages from Pagefind's index, which tools/site/build.py creates and which
// contains only the articles.
(() => {
  const MAX_PAGES = 12; // in the list
  const MAX_PROBLEMS = 3;
  const SYNONYMS = [[/\boom\b/gi, "out of memory"]];
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
  let loading = null;
  const load = () => (loading ??= import(new URL("pagefind/pagefind.js", root).href));
  let index = null;
  const loadProblems = async () => {
    if (!window.problems) await import(new URL("_static/problems.js", root).href);
    const response = await fetch(new URL("problems.json", root));
    return window.problems(await response.json());
  };

  // Return the entries of the problem index that fit best. The site's tests call this function, too.
  const findProblems = async (words) => (await (index ??= loadProblems())).search(words, MAX_PROBLEMS);
  window.findProblems = findProblems;

  const make = (name, properties = {}, ...inside) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...inside);
    return element;
  };

  // Return the pages with the exact phrase, followed by the pages with all of its words.
  const find = async (words) => {
    const pagefind = await load();
    const query = SYNONYMS.reduce((text, [short, long]) => text.replace(short, long), words);
    const searches = query.includes(" ") && !query.includes('"') ? [`"${query}"`, query] : [query];
    const found = new Map();
    for (const each of searches) {
      for (const result of (await pagefind.search(each)).results) if (!found.has(result.id)) found.set(result.id, result);
    }
    return { count: found.size, pages: await Promise.all([...found.values()].slice(0, MAX_PAGES).map((one) => one.data())) };
  };

  // Create a result: the page's title, and its two best sections, each with an excerpt in which Pagefind marks the words.
  const item = (page) => {
    const sections = page.sub_results.slice().sort((a, b) => b.weighted_locations.length - a.weighted_locations.length);
    const parts = (sections.length ? sections.slice(0, 2) : [{ ...page, title: page.meta.title }]).map((section) => {
      const excerpt = make("p", { innerHTML: section.excerpt });
      const named = section.title !== page.meta.title;
      return make("div", {}, ...(named ? [make("a", { href: section.url, textContent: section.title, className: "section" })] : []), excerpt);
    });
    return make("li", {}, make("a", { href: page.url, textContent: page.meta.title, className: "title" }), ...parts);
  };

  // Create a result: an entry's title as a link, and its cause.
  const problemItem = (problem) => {
    const href = new URL(`problems.html#problem-${problem.id}`, root).href;
    const title = make("a", { href, textContent: problem.title.replaceAll("`", ""), className: "title" });
    return make("li", {}, title, make("p", { textContent: problem.cause.replaceAll("`", "") }));
  };

  const start = (form) => {
    const field = form.querySelector("input");
    const status = make("p", { className: "search-status" });
    status.setAttribute("role", "status");
    const list = make("ol", { className: "search-results" });
    const answers = make("ol", { className: "search-problems" });
    answers.setAttribute("aria-label", "What goes wrong, and how to fix it");
    form.after(status, make("div", { className: "search-found" }, answers, list));
    let latest = 0;
    const run = async () => {
      const words = field.value.trim();
      const now = ++latest;
      await new Promise((done) => setTimeout(done, 150)); // until the reader stops typing
      if (now !== latest) return;
      if (!words) return list.replaceChildren(), answers.replaceChildren(), (status.textContent = "");
      try {
        const [problems, { count, pages }] = await Promise.all([findProblems(words), find(words)]);
        if (now !== latest) return; // a later search has begun
        answers.replaceChildren(...problems.map(problemItem));
        list.replaceChildren(...pages.map(item));
        const more = count > MAX_PAGES ? `, the best ${MAX_PAGES} of which are listed` : "";
        status.textContent = count ? `${count} ${count === 1 ? "page" : "pages"}${more}` : `No page contains “${words}”.`;
      } catch {
        status.textContent = "The search works only on a web server: python -m http.server -d site/_build/html";
      }
    };
    field.addEventListener("input", run);
    return (words) => ((field.value = words), run());
  };

  document.addEventListener("DOMContentLoaded", () => {
    const searches = [...document.querySelectorAll("form.bd-search")].map((form) => [form, start(form)]);
    const asked = new URLSearchParams(location.search).get("q");
    const onPage = searches.find(([form]) => form.closest(".search-page"));
    onPage?.[0].querySelector("input").focus();
    if (asked) onPage?.[1](asked);
  });
})();
