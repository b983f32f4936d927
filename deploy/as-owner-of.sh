#!/bin/sh
# Run a command as the owner of a mounted folder, so that what it writes there belongs to that user.
folder=$1
shift
exec setpriv --reuid "$(stat -c %u "$folder")" --regid "$(stat -c %g "$folder")" --clear-groups \
  --no-new-privs "$@"
