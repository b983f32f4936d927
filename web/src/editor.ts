// The SQL editor, loaded when it is needed. It lives in a shadow root, where its styles are
// adopted sheets: the page's policy forbids style elements.
import { StandardSQL, sql } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Prec, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";

export interface Editor {
  text(): string;
  set(text: string): void;
  mark(mistake: { line: number; from: number; to: number } | null): void;
  destroy(): void;
}

const LOOK = EditorView.theme({
  "&": { fontSize: "13px", minHeight: "9rem", maxHeight: "24rem", color: "var(--ink)" },
  // By the browser: CodeMirror sets .cm-focused, which has an outline of its own, a moment later.
  "&:focus-within, &.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", overflow: "auto" },
  ".cm-gutters": { background: "var(--soft)", color: "var(--dim)", border: "0" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "transparent" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--accent-soft) !important",
  },
  ".cm-mistake": {
    background: "var(--bad-soft)",
    textDecoration: "underline wavy var(--bad)",
  },
  ".cm-tooltip": {
    background: "var(--card)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
  },
});

// The place of a mistake, until the text changes.
const found = StateEffect.define<DecorationSet>();
const MISTAKES = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, change) {
    for (const effect of change.effects) if (effect.is(found)) return effect.value;
    return change.docChanged ? Decoration.none : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--dim)", fontStyle: "italic" },
]);

export function open(
  place: HTMLElement,
  text: string,
  tables: Record<string, string[]>,
  onRun: () => void,
  onChange: (text: string) => void,
): Editor {
  const root = place.shadowRoot ?? place.attachShadow({ mode: "open" });
  const box = document.createElement("div");
  root.append(box);
  const run = () => {
    onRun();
    return true;
  };
  const view = new EditorView({
    doc: text,
    parent: box,
    root,
    extensions: [
      Prec.highest(
        keymap.of([
          { key: "Ctrl-Enter", run },
          { key: "Cmd-Enter", run },
        ]),
      ),
      basicSetup,
      syntaxHighlighting(COLOURS),
      sql({ dialect: StandardSQL, schema: tables }),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "SQL" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange(update.state.doc.toString());
      }),
      MISTAKES,
      LOOK,
    ],
  });
  return {
    text: () => view.state.doc.toString(),
    set: (changed) =>
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: changed } }),
    mark: (mistake) => {
      let marks = Decoration.none;
      if (mistake && mistake.line <= view.state.doc.lines) {
        const line = view.state.doc.line(mistake.line);
        const from = Math.min(line.to, line.from + mistake.from);
        const to = Math.min(line.to, line.from + mistake.to);
        const look = Decoration.mark({ class: "cm-mistake" });
        if (from < to) marks = Decoration.set([look.range(from, to)]);
      }
      view.dispatch({ effects: found.of(marks) });
    },
    destroy: () => {
      view.destroy();
      box.remove();
    },
  };
}
