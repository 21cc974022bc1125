"use strict";
// The questions behind each number. Data lie in script elements of type application/json and enter
// the page as text nodes only; nothing is rendered before it is looked at.
(() => {
  const PAGE = 50;
  const rooms = new Map();

  const el = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };
  const fixed = (value, digits = 2) =>
    value === null ? "–" : value.toFixed(digits).replace("-", "−");
  const signed = (value) => {
    if (value === null) return "–";
    const text = fixed(value);
    return value > 0 && Number(value.toFixed(2)) > 0 ? "+" + text : text.replace("−0.00", "0.00");
  };

  // Marginal gains as in the methods: what each ranked chunk is the first to cover.
  function gains(data, question, condition) {
    const list = question.lists[condition];
    const chunks = data.chunks[data.conditions[condition][2]] || [];
    const left = question.evidence.map(([doc, start, end]) => ({
      doc, length: end - start, parts: [[start, end]],
    }));
    return list.map((index) => {
      const [doc, start, end] = chunks[index];
      let gain = 0;
      for (const span of left) {
        if (span.doc !== doc) continue;
        const rest = [];
        for (const [a, b] of span.parts) {
          const low = Math.max(a, start);
          const high = Math.min(b, end);
          if (low >= high) { rest.push([a, b]); continue; }
          gain += (high - low) / span.length / left.length;
          if (a < low) rest.push([a, low]);
          if (high < b) rest.push([high, b]);
        }
        span.parts = rest;
      }
      return gain;
    });
  }

  function columns(data) {
    const made = [
      { title: "Question", sort: (q) => q.id, head: true },
      // Stands under the question and shares its heading: titles are long.
      { title: "Document", sort: (q) => data.documents[q.doc][1], under: true },
      { title: "Type", sort: (q) => q.type, cell: (q) => q.type },
      { title: "Spread", hint: "standard deviation of the scores over conditions", sort: (q) => q.spread, cell: (q) => fixed(q.spread), number: true },
    ];
    data.conditions.forEach(([name, words], i) => made.push({
      title: name, hint: words, number: true, sort: (q) => q.scores[i],
      cell: (q) => fixed(q.scores[i]), heat: (q) => q.scores[i],
    }));
    data.contrasts.forEach(([name, a, b]) => {
      const delta = (q) =>
        q.scores[a] === null || q.scores[b] === null ? null : q.scores[a] - q.scores[b];
      made.push({
        title: name, number: true, sort: delta, cell: (q) => signed(delta(q)), tone: delta,
        hint: `${data.conditions[a][0]} − ${data.conditions[b][0]}`,
      });
    });
    return made;
  }

  class Room {
    constructor(host) {
      this.host = host;
      this.corpus = host.dataset.corpus;
      this.data = JSON.parse(document.getElementById("data-" + this.corpus).textContent);
      this.columns = columns(this.data);
      this.order = { column: 3, down: true };
      this.shown = PAGE;
      this.open = new Set();
      this.build();
      this.draw();
    }

    build() {
      const redraw = () => { this.shown = PAGE; this.draw(); };
      this.find = el("input", { type: "search", placeholder: "words, id or document" });
      this.find.addEventListener("input", redraw);
      const types = [...new Set(this.data.questions.map((q) => q.type))].sort();
      this.type = el("select", {}, el("option", { value: "" }, "all types"),
        ...types.map((type) => el("option", { value: type }, type)));
      this.type.addEventListener("change", redraw);
      this.told = el("output", { "aria-live": "polite" });
      const tools = el("div", { class: "tools" }, el("label", {}, "Filter", this.find),
        el("label", {}, "Type", this.type), this.told);
      this.buttons = this.columns.map((column, i) => {
        const button = el("button", { type: "button", title: column.hint }, column.title);
        button.addEventListener("click", () => {
          const same = this.order.column === i;
          this.order = { column: i, down: same ? !this.order.down : Boolean(column.number) };
          this.draw();
        });
        return button;
      });
      this.heads = [];
      this.columns.forEach((column, i) => {
        if (column.under) this.heads[0].append(" ", this.buttons[i]);
        else this.heads.push(el("th", { scope: "col", class: column.number ? "n" : null },
          this.buttons[i]));
      });
      this.body = el("tbody");
      this.more = el("button", { type: "button", class: "more" });
      this.more.addEventListener("click", () => { this.shown += PAGE; this.draw(); });
      const [embedder] = this.data.cell;
      const caption = el("caption", {}, `${this.data.measure} by condition (${embedder}; BM25 by `
        + "words alone). Spread: standard deviation over conditions. ",
      el("span", { class: "tag open" }, "exploratory"));
      this.host.replaceChildren(tools,
        el("div", { class: "scroll", role: "region", tabindex: "0",
          "aria-label": "Questions, " + this.corpus },
        el("table", { class: "asked" }, caption, el("thead", {}, el("tr", {}, ...this.heads)),
          this.body)),
        this.more);
    }

    kept() {
      const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
      const type = this.type.value;
      const found = this.data.questions.filter((q) => {
        if (type && q.type !== type) return false;
        const text = `${q.id} ${q.text} ${this.data.documents[q.doc].join(" ")}`.toLowerCase();
        return words.every((word) => text.includes(word));
      });
      const by = this.columns[this.order.column].sort;
      const sign = this.order.down ? -1 : 1;
      // Questions without a value stay at the end whichever way the column is sorted.
      return found.map((q) => [by(q), q]).sort(([a, x], [b, y]) => {
        if (a === null || b === null) return (a === null) - (b === null) || (x.id < y.id ? -1 : 1);
        if (a !== b) return (a < b ? -1 : 1) * sign;
        return x.id < y.id ? -1 : 1;
      }).map(([, q]) => q);
    }

    draw() {
      const found = this.kept();
      for (const head of this.heads) head.removeAttribute("aria-sort");
      this.buttons.forEach((button, i) => {
        button.classList.toggle("by", i === this.order.column);
        if (i === this.order.column) {
          button.closest("th").setAttribute("aria-sort",
            this.order.down ? "descending" : "ascending");
        }
      });
      const rows = [];
      for (const question of found.slice(0, this.shown)) {
        rows.push(this.row(question));
        if (this.open.has(question.id)) rows.push(this.detail(question));
      }
      this.body.replaceChildren(...rows);
      const shown = Math.min(this.shown, found.length);
      this.told.textContent = `${shown} of ${found.length} questions`;
      this.more.hidden = shown >= found.length;
      this.more.textContent = `Show ${Math.min(PAGE, found.length - shown)} more`;
    }

    row(question) {
      const open = this.open.has(question.id);
      const button = el("button", { type: "button", "aria-expanded": String(open) }, question.text);
      button.addEventListener("click", () => this.toggle(question, button));
      const made = el("tr", { "data-id": question.id },
        el("th", { scope: "row" }, button, el("small", {}, question.id
          + " · " + this.data.documents[question.doc][1]
          + (question.why ? ` · left out: ${question.why}` : "")
          + (question.reworded ? ` · rewords ${question.reworded}` : ""))));
      for (const column of this.columns.filter((found) => found.cell)) {
        const cell = el("td", { class: column.number ? "n" : "text" }, column.cell(question));
        const heat = column.heat ? column.heat(question) : null;
        if (heat !== null) {
          cell.classList.add("heat");
          cell.style.setProperty("--v", String(Math.min(1, heat)));
        }
        const tone = column.tone ? column.tone(question) : null;
        if (tone) cell.classList.add(tone > 0 ? "pos" : "neg");
        made.append(cell);
      }
      return made;
    }

    toggle(question, button) {
      const row = button.closest("tr");
      if (this.open.delete(question.id)) {
        button.setAttribute("aria-expanded", "false");
        row.nextElementSibling.remove();
        return;
      }
      this.open.add(question.id);
      button.setAttribute("aria-expanded", "true");
      row.after(this.detail(question));
      const place = `#q/${this.corpus}/${encodeURIComponent(question.id)}`;
      try { history.replaceState(null, "", place); } catch { /* a page from disk may refuse */ }
    }

    show(id) {
      const question = this.data.questions.find((q) => q.id === id);
      if (!question) return;
      this.find.value = "";
      this.type.value = "";
      this.open.add(id);
      const place = this.kept().indexOf(question);
      this.shown = Math.max(this.shown, Math.ceil((place + 1) / PAGE) * PAGE);
      this.draw();
      const row = [...this.body.rows].find((found) => found.dataset.id === id);
      row.scrollIntoView({ block: "start" });
    }

    detail(question) {
      const data = this.data;
      const inside = el("div", { class: "inside" });
      inside.append(el("h4", {}, "Evidence"));
      if (!question.evidence.length) {
        inside.append(el("p", { class: "soft" }, question.why
          ? `None: the question is left out (${question.why}).` : "None."));
      }
      for (const [doc, start, end, before, text, after, missing] of question.evidence) {
        const [id, title] = data.documents[doc];
        inside.append(el("blockquote", {}, el("span", { class: "around" }, before),
          el("mark", {}, text), el("span", { class: "around" }, after),
          el("footer", {}, `${title} · ${id}:${start}-${end}`
            + (missing ? ` · ${missing} characters of the evidence not shown` : ""))));
      }
      inside.append(el("h4", {}, "What each condition ranked where"),
        this.grid(question), ...this.lists(question));
      const cell = el("td", { colspan: this.heads.length }, inside);
      return el("tr", { class: "opened", "data-of": question.id }, cell);
    }

    grid(question) {
      const data = this.data;
      const head = el("tr", {}, el("th", { scope: "col" }, "Condition"),
        el("th", { scope: "col", class: "n" }, data.measure),
        ...Array.from({ length: 10 }, (_, i) => el("th", { scope: "col" }, String(i + 1))));
      const body = el("tbody");
      data.conditions.forEach(([name, words, segmentation], i) => {
        const line = el("tr", {}, el("th", { scope: "row", title: words }, name),
          el("td", { class: "n" }, fixed(question.scores[i])));
        gains(data, question, i).forEach((gain, rank) => {
          const [doc, start, end] = data.chunks[segmentation][question.lists[i][rank]];
          const cell = el("td", { title: `${data.documents[doc][0]}:${start}-${end}` },
            gain > 0 ? fixed(gain) : "·");
          if (gain > 0) {
            cell.classList.add("heat");
            cell.style.setProperty("--v", String(0.25 + 0.75 * gain));
          } else {
            cell.classList.add("quiet");
          }
          line.append(cell);
        });
        body.append(line);
      });
      return el("div", { class: "scroll", role: "region", tabindex: "0",
        "aria-label": "Ranks of " + question.id },
      el("table", { class: "ranks" }, el("caption", {}, "Gain by rank: the share of the evidence "
        + "that a chunk is the first to cover. ", el("span", { class: "tag open" }, "exploratory")),
      el("thead", {}, head), body));
    }

    lists(question) {
      const data = this.data;
      return data.conditions.map(([name, words, segmentation], i) => {
        const found = gains(data, question, i);
        const first = found.findIndex((gain) => gain > 0);
        const told = !question.lists[i].length ? "no list" : first < 0
          ? "no evidence in the first ten" : `first evidence at rank ${first + 1}`;
        const made = el("details", {}, el("summary", {}, `${name} · ${words} · ${told}`));
        made.addEventListener("toggle", () => {
          if (made.children.length > 1) return;
          made.append(el("ol", {}, ...question.lists[i].map((index, rank) => {
            const [doc, start, end, head] = data.chunks[segmentation][index];
            return el("li", { class: found[rank] > 0 ? "hit" : null },
              el("code", {}, `${data.documents[doc][0]}:${start}-${end}`),
              found[rank] > 0 ? ` covers ${fixed(found[rank])} ` : " ", el("small", {}, head));
          })));
        });
        return made;
      });
    }
  }

  function room(corpus) {
    if (!rooms.has(corpus)) {
      const host = [...document.querySelectorAll(".questions")]
        .find((found) => found.dataset.corpus === corpus);
      if (!host) return null;
      rooms.set(corpus, new Room(host));
    }
    return rooms.get(corpus);
  }

  function follow() {
    const [kind, corpus, id] = location.hash.slice(1).split("/");
    if (kind !== "q" || !corpus || !id) return;
    const found = room(corpus);
    if (found) found.show(decodeURIComponent(id));
  }

  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watch.unobserve(entry.target);
      room(entry.target.dataset.corpus);
    }
  }, { rootMargin: "800px" });
  document.querySelectorAll(".questions").forEach((host) => watch.observe(host));
  // Paper is not scrolled: what was never looked at would print as nothing.
  addEventListener("beforeprint", () => document.querySelectorAll(".questions")
    .forEach((host) => room(host.dataset.corpus)));
  addEventListener("hashchange", follow);
  follow();
})();
