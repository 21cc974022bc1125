// One question: its documents with the evidence marked and the edges of chunks drawn over them, and
// what each condition ranked where.
class View {
  constructor() {
    this.shownEdges = null;
    this.condition = null;
    this.pushed = false;
    this.turn = 0;
    this.heading = el("h2", { tabindex: "-1", id: "asked" });
    this.about = el("p", { class: "soft" });
    this.place = el("span", { class: "soft place" });
    const button = (text, label, work) => {
      const made = el("button", { type: "button", "aria-label": label, title: label }, text);
      made.addEventListener("click", work);
      return made;
    };
    this.back = button("←", "Previous question (k or ←)", () => this.step(-1));
    this.on = button("→", "Next question (j or →)", () => this.step(1));
    this.close = button("Close", "Close (Escape)", () => this.dialog.close());
    this.inside = el("div", { class: "inside" });
    this.dialog = el("dialog", { class: "view", "aria-labelledby": "asked" },
      el("div", { class: "bar" }, this.back, this.on, this.place, this.close),
      el("div", { class: "asks" }, this.heading, this.about), this.inside);
    this.dialog.addEventListener("close", () => this.left());
    this.dialog.addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => { if (this.dialog.open && this.question) this.lanes(); });
    document.body.append(this.dialog);
  }

  // Rendered once its data are open; what is asked for later wins.
  async show(room, question) {
    const turn = ++this.turn;
    if (!this.dialog.open) {
      this.pushed = Boolean(this.ready);
      this.dialog.showModal();
    }
    [this.room, this.question] = [room, question];
    this.heading.textContent = question.text;
    this.about.textContent = [question.id, question.type, room.title(question.doc),
      question.why ? `left out: ${question.why}` : null,
      question.base ? `rewords ${question.base}` : null].filter(Boolean).join(" · ");
    const at = room.list.indexOf(question);
    this.place.textContent = at < 0 ? "outside the filter" : `${at + 1} of ${room.list.length}`;
    this.back.disabled = at < 1;
    this.on.disabled = at < 0 || at + 1 >= room.list.length;
    this.inside.replaceChildren();
    this.heading.focus({ preventScroll: true });
    try {
      const held = await block(`block-${question.block}-${room.corpus}`);
      room.places ??= new Places(await block(`places-${room.corpus}`));
      const own = held.questions[question.id];
      const docs = [...new Set([question.doc, ...own.evidence.map(([doc]) => doc)])];
      const texts = await Promise.all(docs.map((doc) => this.text(doc)));
      if (turn !== this.turn) return;
      this.own = own;
      this.texts = docs.map((doc, i) => [doc, texts[i]]);
      this.draw();
    } catch (error) {
      if (turn !== this.turn) return;
      this.inside.replaceChildren(el("p", { class: "notice" },
        "This browser cannot open the question's data (", String(error.message || error),
        "). The command ", el("code", {}, `spanwise show ${question.id}`), " prints the same."));
    }
  }

  // An address that leads nowhere: said aloud, with what lies nearest.
  missing(corpus, id, found) {
    this.turn += 1;
    if (!this.dialog.open) {
      this.pushed = Boolean(this.ready);
      this.dialog.showModal();
    }
    [this.room, this.question] = [found, null];
    const corpora = [...document.querySelectorAll(".questions")].map((host) => host.dataset.corpus);
    this.heading.textContent = !found ? `There is no corpus ${corpus} on this page`
      : id ? `There is no question ${id} in ${corpus}` : `The address names no question of ${corpus}`;
    this.about.textContent = found ? `${found.questions.length} questions are listed.`
      : `It has ${corpora.join(", ")}.`;
    this.place.textContent = "";
    [this.back.disabled, this.on.disabled] = [true, true];
    const near = found ? nearest(id, found.questions) : [];
    const items = (near.length || !found ? near : found.list.slice(0, 5)).map((question) => el("li", {},
      el("a", { href: found.address(question) }, question.text), " ", el("small", {}, question.id)));
    const lists = (found ? [corpus] : corpora).map((name) => el("p", {},
      el("a", { href: `#questions-${name}` }, `All questions of ${name}`)));
    this.inside.replaceChildren(el("div", { class: "missing" },
      ...(items.length ? [el("h3", {}, near.length ? "Nearest by name" : "First in the list"),
        el("ul", {}, ...items)] : []), ...lists));
    this.heading.focus({ preventScroll: true });
  }

  async text(doc) {
    const at = this.room.data.documents[doc][2];
    const held = await block(`block-${at}-${this.room.corpus}`);
    return (held.texts[doc] || []).map(([start, text]) => (
      { start, length: /[\ud800-\udbff]/.test(text) ? Array.from(text).length : text.length,
        slice: sliced(text) }));
  }

  look(name) { return this.room.places.look(name); }

  letter(name) { return this.room.places.letter(name); }

  draw() {
    const { conditions } = this.room.data;
    this.ranked = conditions.map(([, , segmentation], i) => this.own.lists[i].map(
      (number) => this.room.places.chunk(segmentation, number)));
    this.gains = this.ranked.map((chunks) => gains(chunks, this.own.evidence));
    const names = conditions.map(([name]) => name);
    if (!names.includes(this.condition)) {
      const { scores } = this.question;
      this.condition = names[scores.indexOf(Math.max(...scores.filter((v) => v !== null)))]
        || names[0];
    }
    // On a narrow screen the list would stand between the ranks and the text.
    this.listed = el("details", { class: "listed" });
    this.listed.open = this.unfolded ?? matchMedia("(min-width: 76rem)").matches;
    this.listed.addEventListener("toggle", () => { this.unfolded = this.listed.open; });
    this.paper = el("section", { class: "paper" }, this.controls(), ...this.texts.map(
      ([doc, pieces]) => this.document(doc, pieces)));
    this.inside.replaceChildren(
      el("section", { class: "ranking" }, ...this.grid(), this.listed), this.paper);
    this.pick(this.condition);
    const first = this.paper.querySelector("mark");
    if (first) {
      // In place without a ride through the document.
      const box = getComputedStyle(this.paper).overflowY === "auto" ? this.paper : null;
      if (box) box.scrollTop = first.getBoundingClientRect().top - box.getBoundingClientRect().top
        - box.clientHeight / 3;
    }
  }

  // ---------------------------------------------------------------- what was ranked

  grid() {
    const { data } = this.room;
    const head = el("tr", {}, el("th", { scope: "col" }, "Condition"),
      el("th", { scope: "col", class: "n" }, "Score"),
      ...Array.from({ length: 10 }, (_, i) => el("th", { scope: "col" }, String(i + 1))));
    const body = el("tbody");
    data.conditions.forEach(([name, words], i) => {
      const radio = el("input", { type: "radio", name: "condition", value: name });
      radio.addEventListener("change", () => this.pick(name));
      const line = el("tr", {}, el("th", { scope: "row", title: words },
        el("label", {}, radio, name)),
      el("td", { class: "n" }, fixed(this.question.scores[i])));
      this.ranked[i].forEach((chunk, rank) => {
        const gain = this.gains[i][rank];
        const here = this.texts.some(([doc]) => doc === chunk.doc);
        const cell = el("td", {
          title: `${readable(data.documents[chunk.doc][0])}:${chunk.start}-${chunk.end}`,
        }, gain > 0 ? fixed(gain) : here ? "○" : "·");
        cell.classList.add(gain > 0 ? "heat" : "quiet");
        if (gain > 0) cell.style.setProperty("--v", String(0.25 + 0.75 * gain));
        line.append(cell);
      });
      body.append(line);
    });
    const table = el("table", { class: "ranks" },
      el("caption", {}, `Evidence by rank; score: ${data.measure}. `,
        el("span", { class: "tag open" }, "exploratory")), el("thead", {}, head), body);
    return [el("h3", {}, "What each condition ranked where"),
      framed(el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Ranks" },
        table)),
      el("p", { class: "soft key" }, "A figure is the share of the evidence that a chunk is the "
        + "first to cover; ○ a chunk of this document without new evidence; · of another document. "
        + "A chosen condition's ranks stand beside the text."), copies(table)];
  }

  pick(name) {
    this.condition = name;
    for (const radio of this.inside.querySelectorAll("input[name=condition]")) {
      radio.checked = radio.value === name;
      radio.closest("tr").classList.toggle("chosen", radio.checked);
    }
    this.lanes();
    this.list();
  }

  // The chosen condition's list, each chunk with its first words as soon as its block is open.
  async list() {
    const { data } = this.room;
    const i = data.conditions.findIndex(([name]) => name === this.condition);
    const [name, words] = data.conditions[i];
    const items = this.ranked[i].map(({ doc, start, end }, rank) => {
      const gain = this.gains[i][rank];
      const head = el("small");
      return { doc, start, end, head, item: el("li", { class: gain > 0 ? "hit" : null },
        place(data.documents[doc][0], start, end),
        gain > 0 ? ` covers ${fixed(gain)} ` : " ", head) };
    });
    const first = this.gains[i].findIndex((gain) => gain > 0);
    const said = !items.length ? "no list" : first < 0
      ? `no evidence in the first ${items.length}` : `first evidence at rank ${first + 1}`;
    this.listed.replaceChildren(el("summary", {}, `${name}: ${said}`),
      el("p", { class: "soft" }, `${words[0].toUpperCase()}${words.slice(1)}.`), el("ol", {}, ...items.map(({ item }) => item)));
    for (const { doc, start, end, head } of items) {
      const piece = (await this.text(doc)).find(
        (found) => found.start <= start && start < found.start + found.length);
      if (!piece) { head.textContent = this.room.title(doc); continue; }
      const text = piece.slice(start - piece.start, Math.min(end, start + 240) - piece.start)
        .replace(/\s+/g, " ").trim();
      head.textContent = text.length > 110 ? `${text.slice(0, 110).trimEnd()}…` : text;
    }
  }

  // ---------------------------------------------------------------- the document

  controls() {
    const { data } = this.room;
    const all = [...new Set(data.conditions.map(([, , segmentation]) => segmentation))];
    this.shownEdges ??= new Set(all);
    const boxes = all.map((name) => {
      const box = el("input", { type: "checkbox", value: name });
      box.checked = this.shownEdges.has(name);
      box.addEventListener("change", () => {
        if (box.checked) this.shownEdges.add(name); else this.shownEdges.delete(name);
        this.lanes();
      });
      return el("label", { class: this.look(name) }, box,
        el("i", { "aria-hidden": "true" }, this.letter(name)), name);
    });
    return el("div", { class: "edges", role: "group", "aria-label": "Edges of chunks" },
      el("span", { class: "soft" }, "Edges of chunks"), ...boxes);
  }

  document(doc, pieces) {
    const { data } = this.room;
    const [id, title, , length] = data.documents[doc];
    const evidence = this.own.evidence.filter(([home]) => home === doc);
    const found = el("div", { class: "text" });
    let end = 0;
    const gap = (from, to) => {
      if (to > from) found.append(el("p", { class: "gap" },
        `${(to - from).toLocaleString("en")} characters are not in this page`));
    };
    for (const piece of pieces) {
      gap(end, piece.start);
      end = piece.start + piece.length;
      found.append(this.prose(doc, piece, evidence));
    }
    gap(end, length);
    const links = evidence.map(([, start, stop], i) => {
      const link = el("button", { type: "button", title: `${id}:${start}-${stop}` },
        `${readable(id)}:${start}-${stop}`);
      link.addEventListener("click", () => found.querySelector(`mark[data-n="${i}"]`)
        ?.scrollIntoView({ block: "center" }));
      return link;
    });
    return el("article", { "data-doc": id }, el("h3", {}, title),
      el("p", { class: "soft spans" }, links.length ? "Evidence: " : this.question.why
        ? `No evidence: the question is left out (${this.question.why}).` : "No evidence.",
      ...links), this.map(doc, evidence, length), el("div", { class: "sheet" },
        el("div", { class: "lanes", "aria-hidden": "true" }), found));
  }

  // One stretch of text as nodes: evidence in marks, an edge where a chunk begins or where text
  // that no chunk holds does.
  prose(doc, piece, evidence) {
    const [low, high] = [piece.start, piece.start + piece.length];
    const edges = [];
    for (const segmentation of Object.keys(this.room.places.found)) {
      const chunks = this.room.places.of(segmentation, doc);
      chunks.forEach(({ start, end }, i) => {
        if (low <= start && start < high) edges.push([start, segmentation, i, "begins"]);
        const next = i + 1 < chunks.length ? chunks[i + 1].start : Infinity;
        if (end < next && low < end && end < high
          && piece.slice(end - low, Math.min(next, high) - low).trim()) {
          edges.push([end, segmentation, i, "ends"]);
        }
      });
    }
    const inside = (at) => evidence.findIndex(([, start, end]) => start <= at && at < end);
    const cuts = [...new Set([low, high, ...edges.map(([at]) => at),
      ...evidence.flatMap(([, start, end]) => [start, end])])]
      .filter((at) => low <= at && at <= high).sort((a, b) => a - b);
    const made = el("div", { class: "prose-text" });
    const told = new Set();
    cuts.forEach((at, i) => {
      for (const [, segmentation, number, what] of edges.filter(([where]) => where === at)) {
        made.append(el("span", { class: `edge ${this.look(segmentation)}`, role: "img",
          "data-of": segmentation, "data-at": at, "data-n": number, "data-what": what,
          "aria-label": `${segmentation} chunk ${number + 1} ${what}` }));
      }
      if (i + 1 === cuts.length) return;
      const text = piece.slice(at - low, cuts[i + 1] - low);
      const n = inside(at);
      made.append(n < 0 ? text : el("mark", { "data-n": n }, text));
      told.add(n);
    });
    return made;
  }

  // The whole document in a strip: lanes of chunks, evidence across them.
  map(doc, evidence, length) {
    const at = (made, start, end) => {
      made.style.left = `${(100 * start) / length}%`;
      made.style.width = `${(100 * (end - start)) / length}%`;
      return made;
    };
    const rows = Object.keys(this.room.places.found).map((name) => el("div", { class: this.look(name) },
      ...this.room.places.of(name, doc).map(({ start, end }) => at(el("i"), start, end))));
    return el("div", { class: "map", role: "img", "aria-label": `Evidence at ${
      evidence.map(([, start]) => `${Math.round((100 * start) / length)}%`).join(", ") || "no place"
    } of ${length.toLocaleString("en")} characters` },
    ...evidence.map(([, start, end]) => at(el("b"), start, end)), ...rows);
  }

  // Beside the text a lane for each segmentation, from edge to edge; the chosen condition's ranks
  // stand in the lane of its own.
  lanes() {
    const { data } = this.room;
    const i = data.conditions.findIndex(([name]) => name === this.condition);
    const mine = data.conditions[i][2];
    const names = Object.keys(this.room.places.found).filter((name) => this.shownEdges.has(name));
    const drawn = [];
    for (const [n, article] of [...this.paper.querySelectorAll("article")].entries()) {
      const doc = this.texts[n][0];
      const text = article.querySelector(".text");
      for (const name of OWN) text.classList.toggle(`no-${name}`, !names.includes(name));
      for (const mark of text.querySelectorAll(".edge.other")) {
        mark.hidden = !names.includes(mark.dataset.of);
      }
      const sheet = article.querySelector(".sheet");
      sheet.style.setProperty("--lanes", String(names.length));
      drawn.push([article, doc, text, sheet]);
    }
    // All widths are set before anything is measured: one layout, not one for each chunk.
    for (const [article, doc, text, sheet] of drawn) {
      const top = sheet.getBoundingClientRect().top;
      const boxes = [];
      names.forEach((name, column) => {
        const ranks = new Map();
        if (name === mine) this.ranked[i].forEach((chunk, rank) => {
          if (chunk.doc === doc) ranks.set(chunk.at, [rank + 1, this.gains[i][rank]]);
        });
        const marks = [...text.querySelectorAll(`.edge[data-of="${name}"]`)].map((mark) => (
          { y: mark.getBoundingClientRect().top - top, ...mark.dataset }));
        const bottoms = [...text.querySelectorAll(".prose-text")].map((part) => {
          const box = part.getBoundingClientRect();
          return [box.top - top, box.bottom - top];
        });
        marks.forEach((mark, j) => {
          if (mark.what !== "begins") return;
          const bottom = bottoms.find(([from, to]) => from - 4 <= mark.y && mark.y <= to)[1];
          const to = Math.min(marks[j + 1]?.y ?? bottom, bottom);
          boxes.push({ name, column, y: mark.y, height: Math.max(3, to - mark.y),
            n: Number(mark.n), rank: ranks.get(Number(mark.n)) });
        });
      });
      article.querySelector(".lanes").replaceChildren(...boxes.map((box) => {
        const made = el("div", { class: `lane ${this.look(box.name)}${box.rank ? " ranked" : ""}${
          box.rank && box.rank[1] > 0 ? " hit" : ""}`,
        title: `${box.name} chunk ${box.n + 1}${box.rank ? `, rank ${box.rank[0]}` : ""}` },
        el("span", {}, box.rank ? `#${box.rank[0]}` : this.letter(box.name) + String(box.n + 1)));
        made.style.top = `${box.y}px`;
        made.style.height = `${box.height}px`;
        made.style.setProperty("--c", String(box.column));
        return made;
      }));
    }
  }

  // ---------------------------------------------------------------- coming and going

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const typed = event.target.closest("input, select, textarea, .scroll");
    const by = { j: 1, k: -1, ArrowRight: typed ? 0 : 1, ArrowLeft: typed ? 0 : -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    this.step(by);
  }

  // The next question takes this one's place in the history: back leads to where one came from.
  step(by) {
    if (!this.question) return;
    const { list } = this.room;
    const at = list.indexOf(this.question);
    const next = at < 0 ? null : list[at + by];
    if (next) location.replace(this.room.address(next));
  }

  // The reader closed it: the address follows.
  left() {
    this.turn += 1;
    this.inside.replaceChildren();
    if (!location.hash.startsWith("#q/")) return;
    if (this.pushed) history.back();
    else location.replace(this.room ? `#questions-${this.room.corpus}` : "#verdict");
  }

  // The address left the question: the view follows.
  shut() {
    this.ready = true;
    if (this.dialog.open) this.dialog.close();
  }
}

const view = new View();
