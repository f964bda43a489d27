"""Figures with the unit that suits them."""

import math


def seconds(value: float) -> str:
    """`7.1 µs`, `12.5 ms`, `3.2 s`."""
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if value * factor < 1000:
            return f"{_digits(value * factor)} {unit}"
    return f"{_digits(value)} s"


def memory(value: float) -> str:
    """Bytes as `42.3 MiB` or `1.25 GiB`."""
    mebibytes = value / (1 << 20)
    return f"{_digits(mebibytes)} MiB" if mebibytes < 1024 else f"{_digits(mebibytes / 1024)} GiB"


def rate(value: float) -> str:
    """Rows a second: `4.14 M/s`, `12,300/s`."""
    if value >= 1e6:
        return f"{_digits(value / 1e6)} M/s"
    return f"{value:,.0f}/s" if value >= 100 else f"{_digits(value)}/s"


def number(value: float) -> str:
    """Four significant digits."""
    if math.isnan(value):
        return "NaN"
    return f"{value:.4f}" if 1e-3 <= abs(value) < 10 or value == 0 else f"{value:.4g}"


def percent(share: float) -> str:
    """A share; never rounded to 0 % or 100 %."""
    text = f"{100 * share:.2f} %"
    if text == "100.00 %" and share < 1:
        return "< 100 %"
    return "> 0 %" if text == "0.00 %" and share > 0 else text


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
