// asio.cc: the one place where Boost.Asio's own code is compiled (BOOST_ASIO_SEPARATE_COMPILATION); the other files see declarations only.

#include <boost/asio/impl/src.hpp>
