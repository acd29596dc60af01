# SPDX-License-Identifier: MIT
#
# libpetsctulle.so, a plug-in for PETSc 3.18 (src/petsc/petsctulle.c), once for each PETSc that is found: those of Debian, which are
# built with Open MPI, and the one that PETSC_DIR and PETSC_ARCH name.  It lies in <build>/petsc/<variant>/.
#
#   TULLE_PETSCS         real, complex, 64-real, 64-complex, own: what was found
#   petsctulle_<variant> the targets
#   tulle_use_petsc(<target> <variant>)     for programs

set(TULLE_PETSCS "")
set(TULLE_PETSC_PACKAGES_real libpetsc-real3.18-dev)
set(TULLE_PETSC_PACKAGES_complex libpetsc-complex3.18-dev)
set(TULLE_PETSC_PACKAGES_64-real libpetsc64-real3.18-dev)

if(NOT TULLE_MPI OR TULLE_SANITIZE OR CMAKE_CROSSCOMPILING)
    return()
endif()
if(TULLE_MPICC_openmpi AND TULLE_MPIRUN_openmpi)
    set(TULLE_PETSC_MPICC ${TULLE_MPICC_openmpi})
    set(TULLE_PETSC_MPIRUN ${TULLE_MPIRUN_openmpi})
else()
    set(TULLE_PETSC_MPICC ${TULLE_MPICC})
    find_program(TULLE_MPIRUN mpirun)
    set(TULLE_PETSC_MPIRUN ${TULLE_MPIRUN})
endif()
if(NOT TULLE_PETSC_MPICC)
    return()
endif()
find_path(TULLE_PETSC_EXAMPLES ksp/ksp/tutorials/ex2.c PATHS /usr/share/petsc/3.18/share/petsc/examples/src NO_DEFAULT_PATH)

function(tulle_use_petsc target variant)
    target_include_directories(${target} SYSTEM PRIVATE ${TULLE_PETSC_DIR_${variant}}/include)
    target_link_libraries(${target} PRIVATE ${TULLE_PETSC_LIBRARY_${variant}})
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-overlength-strings $<$<BOOL:${TULLE_WERROR}>:-Werror>)
    set_target_properties(${target} PROPERTIES C_EXTENSIONS ON)
    tulle_use_mpi(${target} ${TULLE_PETSC_MPICC})
endfunction()

foreach(candidate real:/petsc3.18/*-real complex:/petsc3.18/*-complex 64-real:/petsc64-3.18/*-real
        64-complex:/petsc64-3.18/*-complex own:)
    string(REGEX REPLACE ":.*" "" variant ${candidate})
    string(REGEX REPLACE "^[^:]*:" "" path ${candidate})
    if(path)
        file(GLOB dir /usr/lib/petscdir${path})
    else()
        set(dir "")
        if(DEFINED ENV{PETSC_DIR})
            set(dir $ENV{PETSC_DIR}/$ENV{PETSC_ARCH})
        endif()
    endif()
    if(NOT dir OR NOT EXISTS ${dir}/include/petscmat.h)
        continue()
    endif()
    file(STRINGS ${dir}/include/petscversion.h minor REGEX "define PETSC_VERSION_MINOR +18")
    find_library(TULLE_PETSC_LIBRARY_${variant} NAMES petsc_${variant} petsc petsc64_real petsc64_complex petsc_real petsc_complex
                 PATHS ${dir}/lib NO_DEFAULT_PATH)
    if(NOT minor OR NOT TULLE_PETSC_LIBRARY_${variant})
        message(STATUS "no plug-in for the PETSc in ${dir}: it is not 3.18, or has no shared library")
        continue()
    endif()
    list(APPEND TULLE_PETSCS ${variant})
    set(TULLE_PETSC_DIR_${variant} ${dir})
    tulle_mpi_flags(${TULLE_PETSC_MPICC} mpi)
    set(TULLE_PETSC_WORDS_${variant} -I${dir}/include ${TULLE_PETSC_LIBRARY_${variant}} ${mpi_LINK})
    foreach(include ${mpi_INCLUDE})
        list(APPEND TULLE_PETSC_WORDS_${variant} -I${include})
    endforeach()
    add_library(petsctulle_${variant} MODULE ${PROJECT_SOURCE_DIR}/src/petsc/petsctulle.c)
    tulle_use_petsc(petsctulle_${variant} ${variant})
    target_link_libraries(petsctulle_${variant} PRIVATE tulle)
    set_target_properties(petsctulle_${variant} PROPERTIES OUTPUT_NAME petsctulle INSTALL_RPATH "$ORIGIN/../.."
                          LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/petsc/${variant})
    install(TARGETS petsctulle_${variant} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tulle/petsc-${variant})
endforeach()
