// The list of questions: one row each, sorted by any column, narrowed by words and type.
const PAGE = 50;

class Room {
  constructor(host) {
    this.host = host;
    this.corpus = host.dataset.corpus;
    this.data = JSON.parse(document.getElementById("data-" + this.corpus).textContent);
    this.questions = this.data.questions.map(
      ([id, doc, type, text, why, base, apart, block, scores]) => (
        { id, doc, type, text, why, base, apart, block, scores, words: null }));
    this.pair = null;
    this.order = { key: "Apart", down: true };
    this.shown = PAGE;
    this.build();
    this.draw();
  }

  title(doc) { return this.data.documents[doc][1]; }

  columns() {
    const made = [
      { key: "Question", sort: (q) => q.id },
      // Stands under the question and shares its heading: titles are long.
      { key: "Document", sort: (q) => this.title(q.doc), under: true },
      { key: "Type", sort: (q) => q.type, cell: (q) => q.type },
      { key: "Apart", hint: "highest score minus lowest, over conditions", sort: (q) => q.apart,
        cell: (q) => fixed(q.apart), number: true },
    ];
    this.data.conditions.forEach(([name, words], i) => made.push({
      key: name, hint: words, number: true, sort: (q) => q.scores[i],
      cell: (q) => fixed(q.scores[i]), heat: (q) => q.scores[i],
    }));
    const pairs = this.data.contrasts.map(([name, a, b]) => [name, a, b]);
    if (this.pair) {
      const [a, b] = this.pair;
      const names = this.pair.map((i) => this.data.conditions[i][0]);
      pairs.push([names.join(" − "), a, b]);
    }
    pairs.forEach(([name, a, b]) => {
      const delta = (q) => difference(q.scores[a], q.scores[b]);
      made.push({ key: name, number: true, sort: delta, cell: (q) => signed(delta(q)), tone: delta,
        hint: `${this.data.conditions[a][0]} − ${this.data.conditions[b][0]}` });
    });
    return made;
  }

  build() {
    const redraw = () => { this.shown = PAGE; this.draw(); };
    this.find = el("input", { type: "search", placeholder: "words, id or document" });
    this.find.addEventListener("input", redraw);
    const types = [...new Set(this.questions.map((q) => q.type))].sort();
    this.type = el("select", {}, el("option", { value: "" }, "all types"),
      ...types.map((type) => el("option", { value: type }, type)));
    this.type.addEventListener("change", redraw);
    const choose = (label) => {
      const made = el("select", { "aria-label": label }, el("option", { value: "" }, "–"),
        ...this.data.conditions.map(([name], i) => el("option", { value: String(i) }, name)));
      made.addEventListener("change", () => this.compare());
      return made;
    };
    this.sides = [choose("Difference: this condition"), choose("Difference: minus this condition")];
    this.told = el("output", { "aria-live": "polite" });
    this.rows = el("tbody");
    this.rows.addEventListener("keydown", (event) => this.step(event));
    this.head = el("thead");
    const [embedder] = this.data.cell;
    const caption = el("caption", {}, `${this.data.measure} by condition (${embedder}; BM25 by `
      + "words alone). Apart: the highest minus the lowest over conditions. ",
    el("span", { class: "tag open" }, "exploratory"));
    const table = el("table", { class: "asked" }, caption, this.head, this.rows);
    this.more = el("button", { type: "button", class: "more" });
    this.more.addEventListener("click", () => { this.shown += PAGE; this.draw(); });
    this.host.replaceChildren(
      el("div", { class: "tools" }, el("label", {}, "Filter", this.find),
        el("label", {}, "Type", this.type),
        el("div", { class: "pair", role: "group", "aria-label": "Sort by a difference" },
          el("span", {}, "Sort by a difference"),
          el("span", {}, this.sides[0], " − ", this.sides[1])), this.told),
      framed(el("div", { class: "scroll", role: "region", tabindex: "0",
        "aria-label": "Questions, " + this.corpus }, table)),
      el("div", { class: "under" }, this.more, copies(table)));
    this.headings();
  }

  headings() {
    this.cols = this.columns();
    this.buttons = this.cols.map((column) => {
      const button = el("button", { type: "button", title: column.hint }, column.key);
      button.addEventListener("click", () => {
        const same = this.order.key === column.key;
        this.order = { key: column.key, down: same ? !this.order.down : Boolean(column.number) };
        this.draw();
      });
      return button;
    });
    this.heads = [];
    this.cols.forEach((column, i) => {
      if (column.under) this.heads[0].append(" ", this.buttons[i]);
      else this.heads.push(el("th", { scope: "col", class: column.number ? "n" : null },
        this.buttons[i]));
    });
    this.head.replaceChildren(el("tr", {}, ...this.heads));
  }

  // A difference of two conditions becomes a column, and the order.
  compare() {
    const [a, b] = this.sides.map((side) => side.value);
    this.pair = a !== "" && b !== "" && a !== b ? [Number(a), Number(b)] : null;
    this.headings();
    const last = this.cols[this.cols.length - 1];
    if (this.pair) this.order = { key: last.key, down: true };
    else if (!this.cols.some((column) => column.key === this.order.key)) {
      this.order = { key: "Apart", down: true };
    }
    this.draw();
  }

  kept() {
    const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const type = this.type.value;
    const found = this.questions.filter((q) => {
      if (type && q.type !== type) return false;
      q.words ??= `${q.id} ${q.text} ${this.data.documents[q.doc][0]} ${this.title(q.doc)}`
        .toLowerCase();
      return words.every((word) => q.words.includes(word));
    });
    const by = this.cols.find((column) => column.key === this.order.key).sort;
    const sign = this.order.down ? -1 : 1;
    // Questions without a value stay at the end whichever way the column is sorted; ties keep the
    // order of the data, most disagreement first.
    return found.map((q) => [by(q), q]).sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return a === b ? 0 : (a < b ? -1 : 1) * sign;
    }).map(([, q]) => q);
  }

  draw() {
    this.list = this.kept();
    for (const head of this.heads) head.removeAttribute("aria-sort");
    this.buttons.forEach((button, i) => {
      const by = this.cols[i].key === this.order.key;
      button.classList.toggle("by", by);
      if (by) {
        button.closest("th").setAttribute("aria-sort",
          this.order.down ? "descending" : "ascending");
      }
    });
    this.rows.replaceChildren(...this.list.slice(0, this.shown).map((q) => this.row(q)));
    const shown = Math.min(this.shown, this.list.length);
    this.told.textContent = `${shown} of ${this.list.length} questions`;
    this.more.hidden = shown >= this.list.length;
    this.more.textContent = `Show ${Math.min(PAGE, this.list.length - shown)} more`;
  }

  row(question) {
    const link = el("a", { href: this.address(question) }, question.text);
    const made = el("tr", { "data-id": question.id },
      el("th", { scope: "row" }, link, el("small", {}, question.id
        + " · " + this.title(question.doc)
        + (question.why ? ` · left out: ${question.why}` : "")
        + (question.base ? ` · rewords ${question.base}` : ""))));
    for (const column of this.cols.filter((found) => found.cell)) {
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

  address(question) { return `#q/${this.corpus}/${encodeURIComponent(question.id)}`; }

  // Arrow keys, or j and k, go from row to row.
  step(event) {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = event.target.closest("tr");
    const next = by > 0 ? row.nextElementSibling : row.previousElementSibling;
    if (!next) return;
    event.preventDefault();
    next.querySelector("a").focus();
  }

  // Opens a question by its id; false where there is none.
  show(id) {
    const question = this.questions.find((q) => q.id === id);
    if (question) view.show(this, question);
    return Boolean(question);
  }
}
