# SPDX-License-Identifier: MIT
#
# cmake -DOUTPUT=texts.c -DFOLDER=src/kernels -P EmbedTexts.cmake
#
# Writes a C file that holds every .cl file of the folder as bytes (src/jit/parts.h: tl_texts), by name.
# Bytes and not string literals: those end at 4095 characters, and nothing needs to be escaped.

file(GLOB files "${FOLDER}/*.cl")
list(SORT files)

set(arrays "")
set(table "")
set(i 0)
foreach(path IN LISTS files)
    get_filename_component(name "${path}" NAME_WE)
    file(READ "${path}" bytes HEX)
    string(LENGTH "${bytes}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "static const unsigned char text${i}[] = {\n${bytes}0};\n\n")
    string(APPEND table "    {\"${name}\", text${i}, ${size}},\n")
    math(EXPR i "${i} + 1")
endforeach()

file(WRITE "${OUTPUT}"
     "/* Written by cmake/EmbedTexts.cmake from the files of src/kernels. */\n"
     "#include \"jit/parts.h\"\n\n${arrays}const tl_text tl_texts[] = {\n${table}    {NULL, NULL, 0},\n};\n")
