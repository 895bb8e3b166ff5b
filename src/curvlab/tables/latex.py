r"""A report as a LaTeX table; the document needs `\usepackage{booktabs,xcolor}`."""

import unicodedata

from curvlab.tables.departures import LETTERS
from curvlab.tables.layout import Entry, layout, legend
from curvlab.tables.report import Report

ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "\N{MINUS SIGN}": "$-$",
        "≈": r"$\approx$",
        "√": r"$\surd$",
        "\N{EN DASH}": "--",
        "κ": r"$\kappa$",
        **{
            letter: rf"\textsuperscript{{{unicodedata.normalize('NFKC', letter)}}}"
            for letter in LETTERS
        },
    }
)


def escape(text: str) -> str:
    """The text with every character that LaTeX reads as a command, or cannot set, replaced."""
    return text.translate(ESCAPES)


def latex(report: Report) -> str:
    """The report as a `table` environment: best number bold, second underlined, caption, notes."""
    words = legend(report, "underlined", "grey")
    caption = " ".join([f"{report.title}.", *report.caption, words])
    header = " & ".join(["", "", *(escape(report.labels["column", c]) for c in report.columns)])
    lines = [
        r"% needs \usepackage{booktabs,xcolor}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escape(caption)}}}",
        rf"  \begin{{tabular}}{{ll{'r' * len(report.columns)}}}",
        r"    \toprule",
        rf"    {header.strip()} \\",
        r"    \midrule",
        *_body(report),
        r"    \bottomrule",
        r"  \end{tabular}",
        *(rf"  \par\footnotesize {escape(note)}" for note in report.footnotes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _body(report: Report) -> list[str]:
    lines = []
    for i, row in enumerate(layout(report, report.columns)):
        if i:
            lines.append(r"    \addlinespace")
        lines += [
            "    "
            + " & ".join([escape(line.label), escape(line.name), *map(_entry, line.entries)])
            + r" \\"
            for line in row
        ]
    return lines


def _entry(entry: Entry) -> str:
    mean = escape(entry.mean)
    if entry.rank:
        mean = rf"\{('textbf', 'underline')[entry.rank - 1]}{{{mean}}}"
    number = r" $\pm$ ".join(filter(None, [mean, entry.pm]))
    text = " ".join(filter(None, [number, escape(entry.remark)]))
    return rf"\textcolor{{gray}}{{{text}}}" if entry.grey else text
