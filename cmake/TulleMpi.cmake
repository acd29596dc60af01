# SPDX-License-Identifier: MIT
#
# libtulle_mpi: one file that needs MPI and nothing else (src/mpi/transport.c).  The library and the command know no MPI.
#
#   tulle_mpi            with the MPI of `mpicc`, for programs to link
#   tulle_mpi_openmpi, tulle_mpi_mpich    with that of mpicc.openmpi and mpicc.mpich, as Debian names them; the command opens the one
#                        that it was launched by
#
# tulle_mpi_flags(<compiler> <result>) asks a wrapper what it would do; <result>_INCLUDE, <result>_LINK.
# TULLE_MPIS lists what was found of openmpi and mpich, TULLE_MPI_MISSING the Debian packages that were not.

option(TULLE_MPI "build libtulle_mpi where there is an MPI" ON)

set(TULLE_MPIS "")
set(TULLE_MPI_MISSING "")
set(TULLE_MPI_PACKAGES_openmpi libopenmpi-dev openmpi-bin)
set(TULLE_MPI_PACKAGES_mpich libmpich-dev mpich)

function(tulle_mpi_flags compiler result)
    execute_process(COMMAND ${compiler} -show OUTPUT_VARIABLE shown RESULT_VARIABLE failed ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(include "")
    set(link "")
    if(NOT failed)
        separate_arguments(words UNIX_COMMAND "${shown}")
        foreach(word ${words})
            if(word MATCHES "^-I(.*)")
                list(APPEND include ${CMAKE_MATCH_1})
            elseif(word MATCHES "^-(L|l|Wl,)")
                list(APPEND link ${word})
            endif()
        endforeach()
    endif()
    set(${result}_INCLUDE "${include}" PARENT_SCOPE)
    set(${result}_LINK "${link}" PARENT_SCOPE)
endfunction()

# A target that uses MPI; flags are those of <compiler>.
function(tulle_use_mpi target compiler)
    tulle_mpi_flags(${compiler} mpi)
    target_include_directories(${target} SYSTEM PRIVATE ${mpi_INCLUDE})
    target_link_libraries(${target} PRIVATE ${mpi_LINK})
endfunction()

function(tulle_mpi_library name compiler)
    add_library(${name} SHARED ${PROJECT_SOURCE_DIR}/src/mpi/transport.c)
    target_compile_definitions(${name} PRIVATE TULLE_MPI_BUILD)
    target_link_libraries(${name} PRIVATE tulle_flags)
    tulle_use_mpi(${name} ${compiler})
    set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
    install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# Sanitizers of this compiler and another machine's MPI do not go together.
if(NOT TULLE_MPI OR TULLE_SANITIZE OR CMAKE_CROSSCOMPILING)
    return()
endif()
find_program(TULLE_MPICC mpicc)
if(TULLE_MPICC)
    tulle_mpi_library(tulle_mpi ${TULLE_MPICC})
endif()
foreach(mpi openmpi mpich)
    find_program(TULLE_MPICC_${mpi} mpicc.${mpi})
    find_program(TULLE_MPIRUN_${mpi} NAMES mpirun.${mpi} mpiexec.${mpi})
    if(TULLE_MPICC_${mpi} AND TULLE_MPIRUN_${mpi})
        list(APPEND TULLE_MPIS ${mpi})
        tulle_mpi_library(tulle_mpi_${mpi} ${TULLE_MPICC_${mpi}})
    else()
        list(APPEND TULLE_MPI_MISSING ${TULLE_MPI_PACKAGES_${mpi}})
    endif()
endforeach()
