// Find the row of appendix 90 for old code or for its error message, as find_old_jax/error_lookup.py does and, for imports, dotted
// names and keywords, find_old_jax/find.py. The data comes from tools/site/old_code_page.py. The site's tests compare the results.
window.oldCode = (data) => {
  const named = data.named.map((pattern) => new RegExp(pattern, "g"));

  // Return the old part of a dotted name, which is the name itself or a module in it, or null if nothing is old.
  const lookUp = (dotted, inMessage = false) => {
    const entry = (old) => data.names[old.slice(0, old.lastIndexOf("."))]?.[old.slice(old.lastIndexOf(".") + 1)];
    for (let old = dotted; old.includes("."); old = old.slice(0, old.lastIndexOf("."))) {
      const found = entry(old);
      if (found && (found[0] || (inMessage && old === dotted))) {
        const [state, last, instead, row, name = old] = found;
        return { name, state, last, instead, row };
      }
    }
    return null;
  };

  const byPhrase = (message) => {
    const found = data.phrases.find(([, parts]) => parts.every((part) => message.includes(part)));
    if (!found) return null;
    const [name, instead] = found.length > 2 ? found.slice(2) : data.rows[found[0]];
    return { name, instead, row: found[0] };
  };

  const byKeyword = (message) => {
    const found = message.match(data.keyword);
    if (!found) return null;
    const called = found[1] ?? found[2];
    const known = data.keywords.find(
      ([name, keyword]) => keyword === found[3] && (name.endsWith(`.${called}`) || (called ?? "__init__") === "__init__"),
    );
    return known && { name: `${known[0]}(${known[1]}=)`, instead: known[2], row: known[3] };
  };

  // Return the row for an error message from JAX, or from Python about JAX, or null if there's none.
  const answer = (text) => {
    const message = text.split(/\s+/).join(" ").trim();
    const known = byPhrase(message) ?? byKeyword(message);
    if (known) return known;
    for (const pattern of named) {
      for (const found of message.matchAll(pattern)) {
        const parts = found.groups ? [found.groups.module, found.groups.name] : found.slice(1);
        const old = lookUp(parts.join(".").replace("jnp.", "jax.numpy."), true);
        if (old) return old;
      }
    }
    return null;
  };

  const blank = (text) => text.replace(/[^\n]/g, " ");

  // Return Python code without prompts, magics, comments and strings. Line numbers stay the same.
  const bare = (text) => {
    const lines = text.replace(/\r\n?/g, "\n").split("\n");
    const prompts = lines.some((line) => /^\s*>>> /.test(line));
    const code = lines.map((line) => {
      if (prompts && !/^\s*(>>>|\.\.\.)( |$)/.test(line)) return "";
      return line.replace(/^(\s*)(>>>|\.\.\.|In \[\d*\]:)/, "$1").replace(/^\s*!.*/, "").replace(/^\s*%%?\w+/, "").trimEnd();
    });
    return code
      .join("\n")
      .replace(/("""|''')[^]*?(?:\1|$)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*/g, blank);
  };

  // Return the lines that the code guards against missing APIs: by try and except ImportError, hasattr, or a version check.
  const guarded = (lines) => {
    const found = new Set();
    const indent = (line) => line.search(/\S/);
    const end = (from) => {
      let last = from + 1;
      for (; last < lines.length; last++) {
        const deep = indent(lines[last]);
        const goesOn = /^\s*(except|else|elif|finally)\b/.test(lines[last]);
        if (deep >= 0 && (deep < indent(lines[from]) || (deep === indent(lines[from]) && !goesOn))) break;
      }
      return last;
    };
    lines.forEach((line, i) => {
      if (!/^\s*(try:|if\b.*(\bhasattr\(|version))/.test(line)) return;
      const block = Array.from({ length: end(i) - i }, (_, k) => i + k);
      const caught = block.some((k) => /^\s*except\b(\s*:|.*(ImportError|NotFound|AttributeError|Exception))/.test(lines[k]));
      if (!/^\s*try/.test(line) || caught) block.forEach((k) => found.add(k + 1));
    });
    return found;
  };

  // Return the keywords in a call's arguments, without those of nested calls.
  const keywords = (code, from) => {
    const found = [];
    let deep = 1;
    for (let i = from; i < code.length && deep; i++) {
      if ("([{".includes(code[i])) deep++;
      else if (")]}".includes(code[i])) deep--;
      else if (deep === 1 && /[\s(,]/.test(code[i - 1])) {
        const keyword = code.slice(i, i + 40).match(/^(\w+)\s*=(?!=)/);
        if (keyword) found.push(keyword[1]);
      }
    }
    return found;
  };

  // Return the old names, imports and keywords in code, by line.
  const examine = (text) => {
    let code = bare(text);
    const given = text.replace(/\r\n?/g, "\n").split("\n");
    const quiet = guarded(code.split("\n"));
    given.forEach((line, i) => /#\s*noqa:[\w\s,-]*\bold-jax\b/.test(line) && quiet.add(i + 1));
    const starts = [0, ...[...code.matchAll(/\n/g)].map((end) => end.index + 1)];
    const lineOf = (at) => {
      let [low, high] = [0, starts.length];
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (starts[middle] <= at) low = middle;
        else high = middle;
      }
      return low + 1;
    };
    const found = new Map();
    const tell = (at, old) => {
      const line = lineOf(at);
      if (old && !quiet.has(line) && !found.has(`${line} ${old.name}`)) found.set(`${line} ${old.name}`, { line, ...old });
    };

    const bound = new Map();
    const imported = new Set();
    const bind = (at, name, full) => {
      imported.add(name);
      if (!bound.has(name) && !quiet.has(lineOf(at))) bound.set(name, full);
    };
    const items = (list) =>
      list
        .replace(/[()\\]/g, " ")
        .split(",")
        .map((item) => item.trim().split(/\s+as\s+/))
        .filter(([name]) => /^([\w.]+|\*)$/.test(name));
    code = code.replace(/\bfrom[ \t]+([\w.]+)[ \t]+import\b[ \t]*(\([^)]*\)|(?:\\\n|[^\n;])*)/g, (all, module, list, at) => {
      for (const [name, as] of items(list)) {
        const full = `${module}.${name}`;
        const gone = data.not_modules.includes(module) && lookUp(full, true);
        tell(at, gone ? { ...gone, state: "gone" } : lookUp(full));
        bind(at, as ?? name, full);
      }
      return blank(all);
    });
    code = code.replace(/^([^\n]*[;:])?[ \t]*import[ \t]+((?:\\\n|[^\n;])*)/gm, (all, before, list, at) => {
      const place = at + (before ?? "").length;
      for (const [name, as] of items(list)) {
        const gone = data.not_modules.includes(name) && lookUp(name, true);
        tell(place, gone ? { ...gone, state: "gone" } : lookUp(name));
        bind(place, as ?? name.split(".")[0], as ? name : name.split(".")[0]);
      }
      return (before ?? "") + blank(all.slice((before ?? "").length));
    });
    // In a fragment without imports, conventional names have their usual meaning, unless the code binds them.
    const owned = [...code.matchAll(/^[ \t]*(?:(?:def|class)[ \t]+(\w+)|(\w+)[ \t]*=(?!=))/gm)].map((own) => own[1] ?? own[2]);
    const assumed = new Set(Object.keys(data.conventional).filter((name) => !imported.has(name) && !imported.has("*") && !owned.includes(name)));
    for (const name of assumed) bound.set(name, data.conventional[name]);
    for (const name of owned) bound.set(name, null);

    for (const use of code.matchAll(/([A-Za-z_]\w*)((?:[ \t]*\.[ \t]*\w+)*)/g)) {
      const root = bound.get(use[1]);
      const before = code.slice(Math.max(0, use.index - 40), use.index).trimEnd();
      if (!root || before.endsWith(".")) continue;
      const name = root + use[2].replace(/\s/g, "");
      if (use[2] ? !lookUp(root) : assumed.has(use[1])) tell(use.index, lookUp(name));
      const known = data.keywords.filter(([called, , , , state]) => called === name && state);
      const after = use.index + use[0].length;
      const opened = code.slice(after).search(/\S/);
      const called = code[after + opened] === "(" || /\b[pP]artial\($/.test(before);
      for (const keyword of known.length && called ? keywords(code, after + opened + 1) : []) {
        const [, , instead, row, state] = known.find(([, one]) => one === keyword) ?? [];
        if (state) tell(use.index, { name: `${name}(${keyword}=)`, state, last: "", instead, row });
      }
    }
    return [...found.values()].sort((a, b) => a.line - b.line);
  };

  return { lookUp, answer, examine, bare };
};

// Return a function that tells a message, a description and code apart, and looks them up: a message in the problem index and
// among the old APIs, a description in the index, and code among the old APIs.
window.explainPasted = ({ answer, examine, bare }, { byMessage, search }) => {
  const keyword =
    "(?!(?:and|as|assert|async|await|case|class|def|del|elif|else|except|for|from|global|if|import|in|is|lambda|match|nonlocal|not|or|print|raise|return|try|type|while|with|yield)\\b)";
  // Two words or values that stand side by side without an operator, which Python doesn't allow.
  const adjacent = new RegExp(`(?:(?<![\\w.])${keyword}[\\w.]*\\w|[)\\]])[ \\t]+${keyword}\\w`);
  const isError = (text) => /^\s*Traceback|^(?!\s*except\b)(.*\s)?[\w.]*(Error|Warning): /m.test(text);
  const hasImport = (text) =>
    /(?:^|[:;])[ \t]*(?:>>> )?(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(?:[(*]|[\w.]+[ \t]*(?:$|[,;#\\]|as\b))/m.test(text);
  const hasCall = (text) => /=|[\w)\]][([]|^\s*[#%@[{]/m.test(text);
  const isDescription = (text) => !hasImport(text) && (adjacent.test(bare(text)) || !hasCall(text));

  return (text) => {
    const [problem] = byMessage(text);
    const old = answer(text);
    const message = isError(text) || ((problem || old) && !hasImport(text));
    const found = message || problem ? [] : examine(text);
    const described = !(message && (problem || old)) && (isError(text) || isDescription(text));
    return { problem, old, message, found, closest: described ? search(text) : [] };
  };
};

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("old-code");
  if (!form) return;
  const data = JSON.parse(document.getElementById("old-names").textContent);
  const index = window.problems(JSON.parse(document.getElementById("problems-data").textContent));
  const explain = window.explainPasted(window.oldCode(data), index);
  const [box, status, list] = ["textarea", "[role=status]", "ul"].map((one) => form.querySelector(one));
  form.hidden = false;

  const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  const item = (old) => {
    const line = document.createElement("li");
    const had = old.last ? ` (JAX ${old.last} still had it)` : "";
    const state = { gone: ` is gone${had}`, warns: " warns" }[old.state] ?? "";
    line.append(old.line ? `Line ${old.line}: ` : "", element("code", old.name), `${state}. `);
    const isCode = /^\S+$|[(=@]/.test(old.instead);
    const told = /^gone after/.test(old.instead) ? "" : element(isCode ? "code" : "span", old.instead);
    if (told) line.append(/(deprecated|removed)\b/.test(old.instead) ? "JAX says: " : "Now: ", told, ". ");
    const row = element("a", old.row ? `Row ${old.row} of appendix 90` : "Appendix 90");
    row.href = data.appendix + (old.row ? `#row-${old.row}` : "");
    line.append(row);
    return line;
  };

  // Create an entry of the problem index: its title as a link, its cause and its fix.
  const problemItem = (problem) => {
    const line = document.createElement("li");
    const title = element("a", problem.title.replaceAll("`", ""));
    title.href = `problems.html#problem-${problem.id}`;
    const fix = document.createElement("pre");
    fix.append(element("code", problem.fix));
    line.append(title, `. ${problem.cause.replaceAll("`", "")}`, fix);
    return line;
  };

  const many = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

  const read = () => {
    const text = box.value;
    const { problem, old, message, found, closest } = explain(text);
    const known = message && (problem ? problemItem(problem) : old && item(old));
    list.replaceChildren(...(known ? [known] : [...found.map(item), ...closest.map(problemItem)]));
    const sees = "The command sees more: find-old-jax FILE.";
    if (!text.trim()) status.textContent = "";
    else if (known) status.textContent = problem ? "This message has an entry:" : `This message is about ${old.name}:`;
    else if (/^\s*\{/.test(text) && text.includes('"cells"')) status.textContent = `A notebook's file is not read here. ${sees}`;
    else if (closest.length) {
      const start = found.length ? `${many(found.length, "old API")} for JAX ${data.newest}.` : "No entry has this message.";
      status.textContent = `${start} The closest entries:`;
    }
    else if (message) status.textContent = "No entry and no row of appendix 90 has this message.";
    else if (found.length) status.textContent = `${many(found.length, "old API")} for JAX ${data.newest}. ${sees}`;
    else status.textContent = `Nothing old for JAX ${data.newest} in imports, dotted names and keywords. ${sees}`;
  };
  let waiting;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(read, 200);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  if (box.value) read(); // the browser may have restored the text
});
