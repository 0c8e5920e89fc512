# What the tests on the stand-in driver share. WORK is its folder; `bundle` is where it finds kernels.
set(units ${WORK}/units)
file(MAKE_DIRECTORY ${units})

# Runs a program while the stand-in misbehaves as `fault` says; sets `status` and `output`.
function(runProgram fault)
  file(WRITE ${units}/fault "${fault}\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${WORK}:$ENV{LD_LIBRARY_PATH} ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(status "${status}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect wantedStatus pattern what)
  if(NOT status EQUAL wantedStatus OR NOT output MATCHES "${pattern}")
    file(REMOVE ${units}/fault ${units}/bundle)
    message(FATAL_ERROR "${what}: exit code ${status}, expected ${wantedStatus} and ${pattern}\n${output}")
  endif()
endfunction()
