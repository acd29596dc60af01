# SPDX-License-Identifier: MIT
#
# What is embedded in the library: the texts of src/kernels (texts.c) and images made of them ahead of time
# (images.c).
#
# Both are made once a build tree and compiled once, as the object library tulle_embedded, which every library
# of tulle_objects() takes in.

set(embedded ${PROJECT_BINARY_DIR}/embedded)
file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/*.cl)
file(CONFIGURE OUTPUT ${embedded}/files.txt CONTENT "${kernels}\n" @ONLY)     # one less is a change, too
set(script ${PROJECT_SOURCE_DIR}/cmake/EmbedTexts.cmake)
add_custom_command(OUTPUT ${embedded}/texts.c
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/src/kernels -DOUTPUT=${embedded}/texts.c -P ${script}
    DEPENDS ${kernels} ${script} ${embedded}/files.txt COMMENT "Embedding the kernels" VERBATIM)

file(CONFIGURE OUTPUT ${embedded}/no_images.c @ONLY CONTENT
     "#include \"jit/parts.h\"\n\nconst tl_embedded tl_embedded_table[] = {{.arch = NULL}};\n")
set(images ${embedded}/no_images.c)

add_library(tulle_embedded OBJECT ${embedded}/texts.c ${images})
target_include_directories(tulle_embedded PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tulle_embedded PRIVATE tulle_flags)
