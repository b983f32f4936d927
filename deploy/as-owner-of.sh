#!/bin/sh
# as-owner-of FOLDER OTHER COMMAND...: run a command as the owner of a mounted folder, so that what it
# writes there belongs to that user. Docker makes a folder that is missing, for root. If FOLDER is root's
# and empty, but OTHER is a user's, that has happened.
folder=$1
other=$2
shift 2
if [ "$(stat -c %u "$folder")" = 0 ] && [ -z "$(ls -A "$folder")" ] && [ "$(stat -c %u "$other")" != 0 ]; then
  name=${folder#/}
  echo "the host's folder for $folder is empty and belongs to root, as Docker makes one that is missing:" \
    "remove it, make your own (if it is ./$name: sudo rmdir $name; mkdir $name), and repeat the command" >&2
  exit 2
fi
exec setpriv --reuid "$(stat -c %u "$folder")" --regid "$(stat -c %g "$folder")" --clear-groups \
  --no-new-privs "$@"
