#!/bin/sh
# The image's entry point: runs the command it is given in its own place, so that signals reach it; options alone are
# those of simclr_train.
case ${1:-} in
  -* | info) set -- simclr_train "$@" ;;
esac
exec "$@"
