# SPDX-License-Identifier: MIT
#
# What is embedded in the library: the texts of src/kernels (texts.c) and images made of them ahead of time
# (images.c), so that the first product need not wait for a compiler.
#
# Both are made once a build tree and compiled once, as the object libraries tulle_texts and tulle_ahead, which
# every library of tulle_objects() takes in.  Images need NVRTC while building, nothing else of CUDA:
#
#   TULLE_IMAGES=AUTO   as many as can be had; none in sanitized, quick and cross builds
#   TULLE_IMAGES=ON     all, or the build fails
#   TULLE_IMAGES=OFF    none; kernels are compiled when they are first used

set(TULLE_IMAGES AUTO CACHE STRING "embed compiled kernels: AUTO, ON, OFF")
set_property(CACHE TULLE_IMAGES PROPERTY STRINGS AUTO ON OFF)
set(TULLE_IMAGES_WANTED ${TULLE_IMAGES})
if(TULLE_IMAGES STREQUAL "AUTO" AND (TULLE_SANITIZE OR TULLE_QUICK_NOW OR CMAKE_CROSSCOMPILING))
    set(TULLE_IMAGES_WANTED OFF)
endif()

set(src ${PROJECT_SOURCE_DIR}/src)
set(embedded ${PROJECT_BINARY_DIR}/embedded)

# ---- texts

file(GLOB kernels CONFIGURE_DEPENDS ${src}/kernels/*.cl)
file(CONFIGURE OUTPUT ${embedded}/files.txt CONTENT "${kernels}\n" @ONLY)     # one less is a change, too
set(script ${PROJECT_SOURCE_DIR}/cmake/EmbedTexts.cmake)
add_custom_command(OUTPUT ${embedded}/texts.c
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${src}/kernels -DOUTPUT=${embedded}/texts.c -P ${script}
    DEPENDS ${kernels} ${script} ${embedded}/files.txt COMMENT "Embedding the kernels" VERBATIM)
add_library(tulle_texts OBJECT ${embedded}/texts.c)

# ---- images, by a tool made of the texts, jit/ and the list of programs in gpu/

file(CONFIGURE OUTPUT ${embedded}/no_images.c @ONLY CONTENT
     "#include \"jit/parts.h\"\n\nconst tl_embedded tl_embedded_table[] = {{.arch = NULL}};\n")
set(images ${embedded}/no_images.c)
if(TULLE_IMAGES_WANTED)
    file(GLOB sources CONFIGURE_DEPENDS ${src}/base/*.c ${src}/jit/*.c)
    add_executable(tulle_images ${PROJECT_SOURCE_DIR}/tools/images.c ${sources} ${src}/gpu/nvrtc.c
                   ${src}/gpu/programs.c ${embedded}/no_images.c $<TARGET_OBJECTS:tulle_texts>)
    set_target_properties(tulle_images PROPERTIES OUTPUT_NAME images RUNTIME_OUTPUT_DIRECTORY ${embedded})
    target_include_directories(tulle_images PRIVATE ${src})
    target_link_libraries(tulle_images PRIVATE tulle_flags Threads::Threads m ${CMAKE_DL_LIBS})
    set(images ${embedded}/images.c)
    set(must "")
    if(NOT TULLE_IMAGES_WANTED STREQUAL "AUTO")
        set(must --must)
    endif()
    add_custom_command(OUTPUT ${images}
        COMMAND ${CMAKE_COMMAND} -E env TULLE_CACHE=${embedded}/cache $<TARGET_FILE:tulle_images> ${must} ${images}
        DEPENDS tulle_images COMMENT "Compiling kernels ahead of time" VERBATIM)
endif()

add_library(tulle_ahead OBJECT ${images})
foreach(part tulle_texts tulle_ahead)
    target_include_directories(${part} PRIVATE ${src})
    target_link_libraries(${part} PRIVATE tulle_flags)
endforeach()
