"use strict";
// What the other scripts share: making elements, figures as text, opening blocks of data. Texts of
// the corpus enter the page as text nodes only.
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

const difference = (a, b) => (a === null || b === null ? null : a - b);

const told = el("output", { class: "unseen", role: "status" });

// Says something to a screen reader, and to tests.
function announce(text) {
  told.textContent = "";
  requestAnimationFrame(() => { told.textContent = text; });
}

// A frame whose table is wider than itself says so; at the right end it says where the rest lies.
const wide = (frame) => {
  const over = frame.scrollWidth > frame.clientWidth + 1;
  frame.classList.toggle("wide", over);
  frame.classList.toggle("end",
    over && frame.scrollLeft + frame.clientWidth >= frame.scrollWidth - 1);
};
const sizes = new ResizeObserver((seen) => seen.forEach(({ target }) => wide(target.closest(".scroll"))));

function framed(frame) {
  frame.addEventListener("scroll", () => wide(frame), { passive: true });
  sizes.observe(frame);
  sizes.observe(frame.querySelector("table"));
  return frame;
}

// A deflated block, opened once and kept: opening costs milliseconds, keeping it little.
const opened = new Map();

function block(id) {
  if (!opened.has(id)) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent),
      (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    opened.set(id, new Response(stream).json());
  }
  return opened.get(id);
}
