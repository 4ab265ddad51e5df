!> What the module `isohalo` calls: functions of isohalo.h, and those of arrays.cpp for Fortran's handles and arrays.
module isohalo_c
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_long_long, c_ptr, c_size_t
  implicit none

  interface
    function c_halo_create(cart, owned, width, shape, radius, s, relative, depth, element, components, halo, bytes) &
        result(rc) bind(C, name="isohalo_fortran_halo_create")
      import :: c_int, c_long_long, c_ptr
      integer, value :: cart, element
      integer(c_int), value :: width, shape, radius, s, depth, components
      integer(c_long_long), intent(in) :: owned(*)
      integer(c_int), intent(in) :: relative(*)
      type(c_ptr), intent(out) :: halo
      integer(c_long_long), intent(out) :: bytes
      integer(c_int) :: rc
    end function c_halo_create
    function c_halo_start(cart, halo, array, d, owned, width, bytes) result(rc) &
        bind(C, name="isohalo_fortran_halo_start")
      import :: c_int, c_long_long, c_ptr
      integer, value :: cart
      type(c_ptr), value :: halo
      type(*), dimension(..), intent(inout), asynchronous :: array
      integer(c_int), value :: d, width
      integer(c_long_long), intent(in) :: owned(*)
      integer(c_long_long), value :: bytes
      integer(c_int) :: rc
    end function c_halo_start
    function c_halo_progress(halo) result(rc) bind(C, name="isohalo_halo_progress")
      import :: c_int, c_ptr
      type(c_ptr), value :: halo
      integer(c_int) :: rc
    end function c_halo_progress
    function c_halo_finish(halo) result(rc) bind(C, name="isohalo_halo_finish")
      import :: c_int, c_ptr
      type(c_ptr), value :: halo
      integer(c_int) :: rc
    end function c_halo_finish
    function c_halo_free(halo) result(rc) bind(C, name="isohalo_halo_free")
      import :: c_int, c_ptr
      type(c_ptr), intent(inout) :: halo
      integer(c_int) :: rc
    end function c_halo_free
    function c_ready() result(rc) bind(C, name="isohalo_fortran_ready")
      import :: c_int
      integer(c_int) :: rc
    end function c_ready
    function c_process_grid(ranks, d, shape, dims) result(rc) bind(C, name="isohalo_process_grid")
      import :: c_int, c_long_long
      integer(c_int), value :: ranks, d
      integer(c_long_long), intent(in) :: shape(*)
      integer(c_int), intent(out) :: dims(*)
      integer(c_int) :: rc
    end function c_process_grid
    function c_reducer_create(comm, cells, owned, width, op, reducer) result(rc) &
        bind(C, name="isohalo_fortran_reducer_create")
      import :: c_int, c_long_long, c_ptr
      integer, value :: comm
      integer(c_int), value :: cells, width, op
      integer(c_long_long), intent(in) :: owned(*)
      type(c_ptr), intent(out) :: reducer
      integer(c_int) :: rc
    end function c_reducer_create
    function c_reducer_start(comm, reducer, array, d, owned, width) result(rc) &
        bind(C, name="isohalo_fortran_reducer_start")
      import :: c_int, c_long_long, c_ptr, c_double
      integer, value :: comm
      type(c_ptr), value :: reducer
      real(c_double), dimension(..), intent(in) :: array
      integer(c_int), value :: d, width
      integer(c_long_long), intent(in) :: owned(*)
      integer(c_int) :: rc
    end function c_reducer_start
    function c_reducer_wait(reducer, result) result(rc) bind(C, name="isohalo_reducer_wait")
      import :: c_int, c_ptr, c_double
      type(c_ptr), value :: reducer
      real(c_double), intent(out) :: result
      integer(c_int) :: rc
    end function c_reducer_wait
    function c_reducer_free(reducer) result(rc) bind(C, name="isohalo_reducer_free")
      import :: c_int, c_ptr
      type(c_ptr), intent(inout) :: reducer
      integer(c_int) :: rc
    end function c_reducer_free
    function c_refuse(text, length) result(rc) bind(C, name="isohalo_fortran_refuse")
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: text(*)
      integer(c_int), value :: length
      integer(c_int) :: rc
    end function c_refuse
    function c_error_text() result(text) bind(C, name="isohalo_error_text")
      import :: c_ptr
      type(c_ptr) :: text
    end function c_error_text
    function c_strlen(text) result(length) bind(C, name="strlen")
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function c_strlen
  end interface
end module isohalo_c
