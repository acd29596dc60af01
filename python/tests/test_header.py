# SPDX-License-Identifier: MIT
"""_lib.py says what include/tulle.h says: numbers, structures, functions."""
import ctypes
import os
import re
import subprocess
from pathlib import Path

import pytest

import tulle
from tulle import _lib
from tulle.errors import KINDS

INCLUDE = os.path.join(os.path.dirname(__file__), "..", "..", "include")
HEADER = Path(INCLUDE, "tulle.h").read_text()
PLAIN = re.sub(r"/\*.*?\*/", "", HEADER + Path(INCLUDE, "tulle_cuda.h").read_text(), flags=re.S)


def numbers(enum):
    """The names and values of an enum of the header."""
    body = re.search(r"typedef enum %s \{(.*?)\}" % enum, PLAIN, re.S).group(1)
    return {name: int(value) for name, value in re.findall(r"TULLE_(\w+)\s*=\s*(-?\d+)", body)}


def test_status_list():
    listed = re.findall(r"X\((\w+),\s*(-?\d+),", HEADER)
    assert len(listed) > 10
    assert {name: int(code) for name, code in listed} == _lib.STATUS
    assert set(KINDS) == set(_lib.STATUS.values()) - {0}, "each status has an exception, and no two the same"


def test_enums():
    assert numbers("tulle_type") == {_lib.TYPE_NAMES[k]: v for k, v in _lib.TYPE.items()}
    assert numbers("tulle_index") == {_lib.INDEX_NAMES[k]: v for k, v in _lib.INDEX.items()}
    assert numbers("tulle_place") == {"HOST": _lib.HOST, "DEVICE": _lib.DEVICE}
    assert numbers("tulle_op") == {"KEEP": _lib.KEEP, "TRANSPOSE": _lib.TRANSPOSE, "ADJOINT": _lib.ADJOINT}
    assert numbers("tulle_order") == {"BY_ROWS": _lib.BY_ROWS, "BY_COLS": _lib.BY_COLS}
    for name in ("MAX_SHARES", "MAX_STAGES"):
        assert int(re.search(r"#define TULLE_%s (\d+)" % name, HEADER).group(1)) == getattr(_lib, name)


def test_version():
    version = re.search(r'#define TULLE_VERSION "(.*)"', HEADER).group(1)
    assert version == tulle.__version__ == _lib.tl.version().decode()


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    """Size and offset of every field, as the C compiler sees them."""
    folder = tmp_path_factory.mktemp("layout")
    lines = ['#include "tulle.h"', "#include <stdio.h>", "int main(void)", "{"]
    for name, structure in _lib.STRUCTURES.items():
        lines.append(f'    printf("{name} %zu\\n", sizeof({name}));')
        for field, *_ in structure._fields_:
            lines.append(f'    printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                         f"sizeof((({name} *)0)->{field}));")
    source = folder / "layout.c"
    source.write_text("\n".join(lines + ["    return 0;", "}", ""]))
    program = str(folder / "layout")
    subprocess.run([*os.environ.get("CC", "cc").split(), "-I", INCLUDE, str(source), "-o", program], check=True)
    out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: tuple(map(int, line.split()[1:])) for line in out.splitlines()}


@pytest.mark.parametrize("name", _lib.STRUCTURES)
def test_structure(layout, name):
    structure = _lib.STRUCTURES[name]
    assert layout[name] == (ctypes.sizeof(structure),)
    for field, *_ in structure._fields_:
        mine = getattr(structure, field)
        assert layout[f"{name}.{field}"] == (mine.offset, mine.size), field
    body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), PLAIN, re.S).group(1)
    fields = re.findall(r"(\w+)(?:\[\w+\])?\s*[,;]", body)
    assert fields == [field for field, *_ in structure._fields_], "the header has the same fields, in this order"


C_TYPES = {ctypes.c_int: "int", ctypes.c_int64: "int64_t", ctypes.c_size_t: "size_t", ctypes.c_char_p: "const char *", None: "void"}


def kind(ctype):
    """A ctypes type as one of few words, and a C type likewise: pointers are alike, and so are enums and
    int.
    """
    if ctype in (ctypes.c_int64, ctypes.c_size_t, None, ctypes.c_int):
        return C_TYPES[ctype]
    if isinstance(ctype, type) and issubclass(ctype, ctypes.Structure):
        return {v: k for k, v in _lib.STRUCTURES.items()}[ctype]
    return "pointer"


def kind_in_c(text):
    text = text.replace("const", " ").strip()
    if "*" in text or text.startswith(("tulle_progress_fn", "tulle_trace_fn")):
        return "pointer"
    word = text.split()[0]
    return "int" if word in ("int", "tulle_status", "tulle_type", "tulle_index", "tulle_op", "tulle_place", "tulle_order") else word


@pytest.mark.parametrize("name", _lib.FUNCTIONS)
def test_function(name):
    result, arguments = _lib.FUNCTIONS[name]
    found = re.search(r"TULLE_API\s+([\w ]+?[\s*]+)tulle_%s\(([^;]*?)\);" % name, PLAIN, re.S)
    assert found, f"tulle_{name} is not in the header"
    declared = [] if found.group(2).strip() == "void" else found.group(2).split(",")
    assert [kind_in_c(a) for a in declared] == [kind(a) for a in arguments]
    assert kind_in_c(found.group(1)) == kind(result)
