// What a question is made of: text by code points, the gains of chunks, the chunks of a corpus, and
// which other questions are named alike.

// Text by code points, as every offset counts them; JavaScript counts others twice.
function sliced(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (start, end) => text.slice(start, end);
  const points = Array.from(text);
  return (start, end) => points.slice(start, end).join("");
}

// The questions whose ids are alike enough: pairs of neighbouring letters they share, by Dice.
function nearest(asked, questions, most = 5, least = 0.4) {
  const pairs = (text) => new Set([...`${text.toLowerCase()} `].map(
    (letter, i, all) => (all[i - 1] ?? " ") + letter));
  const mine = pairs(asked);
  return questions.map((question) => {
    const its = pairs(question.id);
    return [[...its].filter((pair) => mine.has(pair)).length * 2 / (its.size + mine.size), question];
  }).sort(([a], [b]) => b - a).slice(0, most).filter(([share]) => share >= least).map(([, q]) => q);
}

// Marginal gains as in the methods: what each ranked chunk is the first to cover.
function gains(chunks, evidence) {
  const left = evidence.map(([doc, start, end]) => (
    { doc, length: end - start, parts: [[start, end]] }));
  return chunks.map(({ doc, start, end }) => {
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

// An id as a person reads it: the files of a folder have theirs percent-encoded. What would not be
// printed, and what is no encoding, stays as it is.
function readable(id) {
  try {
    const read = decodeURIComponent(id);
    return /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(read) ? id : read;
  } catch { return id; }
}

function place(id, start, end) {
  return el("code", { title: `${id}:${start}-${end}` }, `${readable(id)}:${start}-${end}`);
}

// The segmentations of spanwise itself; those that other packages cut have looks in turn, by name.
const OWN = ["fixed", "induced", "native"];
const OTHERS = ["other", "other second", "other third"];

// The chunks of one corpus, by number: a number counts the chunks of all earlier documents.
class Places {
  constructor(found) {
    this.found = found;
    this.first = {};
    this.others = Object.keys(found).filter((name) => !OWN.includes(name)).sort();
    for (const [name, documents] of Object.entries(found)) {
      let sum = 0;
      this.first[name] = documents.map((edges) => (sum += edges.length / 2) - edges.length / 2);
    }
  }

  // Its classes in the page's style.
  look(name) {
    return OWN.includes(name) ? name : OTHERS[this.others.indexOf(name) % OTHERS.length];
  }

  // A letter of its name that no earlier one has, where there is one.
  letter(name) {
    const taken = new Set();
    for (const other of [...OWN, ...this.others]) {
      const its = [...other.toUpperCase()];
      const mine = its.find((sign) => !taken.has(sign)) ?? its[0];
      if (other === name) return mine;
      taken.add(mine);
    }
    return name[0].toUpperCase();
  }

  chunk(segmentation, number) {
    const first = this.first[segmentation];
    let [low, high] = [0, first.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (first[middle] <= number) low = middle; else high = middle - 1;
    }
    const at = number - first[low];
    const edges = this.found[segmentation][low];
    return { doc: low, at, start: edges[2 * at], end: edges[2 * at + 1] };
  }

  // All chunks of one document, in order.
  of(segmentation, doc) {
    const edges = this.found[segmentation][doc];
    return Array.from({ length: edges.length / 2 }, (_, i) => (
      { start: edges[2 * i], end: edges[2 * i + 1] }));
  }
}
