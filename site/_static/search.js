// Search while the reader types, in the dialog and on the search page. Pagefind's index, which tools/site/build.py creates,
// contains only the articles.
(() => {
  const MAX_PAGES = 12; // in the list
  const SYNONYMS = [[/\boom\b/gi, "out of memory"]];
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
  let loading = null;
  const load = () => (loading ??= import(new URL("pagefind/pagefind.js", root).href));

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

  const start = (form) => {
    const field = form.querySelector("input");
    const status = make("p", { className: "search-status" });
    status.setAttribute("role", "status");
    const list = make("ol", { className: "search-results" });
    form.after(status, list);
    let latest = 0;
    const run = async () => {
      const words = field.value.trim();
      const now = ++latest;
      await new Promise((done) => setTimeout(done, 150)); // until the reader stops typing
      if (now !== latest) return;
      if (!words) return list.replaceChildren(), (status.textContent = "");
      try {
        const { count, pages } = await find(words);
        if (now !== latest) return; // a later search has begun
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
