"""The `caudal token` commands: access tokens of a cluster."""

import re
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from caudal.cli.cluster import DEFAULT_DIR, DirOption
from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE
from caudal.errors import UsageError
from caudal.formats.tokens import (
    MOST_TOKENS,
    NEVER,
    TokenEntry,
    check_name,
    digest_of,
    moment_of,
    new_token,
    rights_of,
    told_moment,
)
from caudal.process.tokens import changing, read_entries, read_key, read_strong

token = typer.Typer(
    name="token",
    help="Manage the access tokens of a cluster: new, list, revoke.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The owner of the token and of its jobs.")
]
FileOption = Annotated[
    Path | None,
    typer.Option("--token-file", help="The token file.", show_default="that of the cluster"),
]
_SECONDS = {"h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}


@token.command("new")
def new(
    name: NameArgument,
    rights: Annotated[
        str, typer.Option("--rights", help="Any of read, submit, admin; separated by commas.")
    ] = "read,submit",
    expires: Annotated[
        str, typer.Option("--expires", help="After 12h, 30d, 8w, or at 2027-01-31T00:00:00Z.")
    ] = NEVER,
    another: Annotated[
        bool, typer.Option("--another", help="Add a token to those of this owner.")
    ] = False,
    kept: Annotated[
        Path | None,
        typer.Option("--from", help="Use the token in this file, if it is strong enough."),
    ] = None,
    folder: DirOption = DEFAULT_DIR,
    file: FileOption = None,
) -> None:
    """Create a token and print it, only once. Gateways accept it within one or two seconds.

    - `caudal token new alice > alice.token` then give the file to Alice only
    - `caudal token new wall --rights read --expires 30d`
    """
    path, owner = _path(folder, file), check_name(name)
    made = read_strong(kept) if kept else new_token()
    chosen, until = rights_of(rights), _until(expires, time.time())
    with changing(path) as entries:
        if not another and any(one.name == owner for one in entries):
            raise UsageError(f"{name} has a token: --another adds one, `revoke` removes it")
        if len(entries) >= MOST_TOKENS:
            raise UsageError(f"{path} holds {MOST_TOKENS} tokens, the maximum: revoke some")
        digest = digest_of(made, read_key(path))
        if any(one.digest == digest for one in entries):
            raise UsageError("this token is in the file already: every line needs its own")
        entries.append(TokenEntry(owner, chosen, until, digest))
    if kept is None:
        print(made)
    print(f"{path}: {name}, {rights}, expires {told_moment(until)}", file=sys.stderr)
    _say_what_is_left_to_do(folder, file)


@token.command("list")
def list_(folder: DirOption = DEFAULT_DIR, file: FileOption = None) -> None:
    """Show owners, rights and expiry. The tokens themselves are not stored."""
    path = _path(folder, file)
    entries = read_entries(path) if path.exists() else ()
    if not entries:
        print(f"{path} holds no token: `caudal token new NAME` adds one", file=sys.stderr)
    for one in entries:
        over = one.expires is not None and one.expires <= time.time()
        rights, until = ",".join(sorted(one.rights)), told_moment(one.expires)
        print(f"{one.name}  {one.id}  {rights}  {until}{'  expired' if over else ''}")


@token.command("revoke")
def revoke(
    name: NameArgument,
    identity: Annotated[
        str | None, typer.Option("--id", help="Only the token with this id, from `list`.")
    ] = None,
    folder: DirOption = DEFAULT_DIR,
    file: FileOption = None,
) -> None:
    """Revoke the tokens of an owner. Gateways refuse them within one or two seconds."""
    path = _path(folder, file)
    with changing(path) as entries:
        gone = [one for one in entries if one.name == name and identity in (None, one.id)]
        if not gone:
            raise UsageError(f"{path} has no such token: `caudal token list` shows them")
        entries[:] = [one for one in entries if one not in gone]
    print(f"{path}: {len(gone)} of {name} revoked", file=sys.stderr)


def _path(folder: Path, file: Path | None) -> Path:
    return file or Cluster.open_anyway(folder, _any_host(folder)).tokens


def _any_host(folder: Path) -> str | None:
    """Return any host of the cluster: tokens are the same on every host."""
    from caudal.cluster.settings import read_settings

    return next(iter(read_settings(folder).hosts), None)


def _say_what_is_left_to_do(folder: Path, file: Path | None) -> None:
    if file is None and not Cluster.open_anyway(folder, _any_host(folder)).settings.tokens:
        print(
            f'gateways do not ask for tokens yet: write tokens = "tokens" into {folder / FILE}, '
            "then `caudal down` and `caudal up`",
            file=sys.stderr,
        )


def _until(text: str, now: float) -> float | None:
    match = re.fullmatch(r"(\d{1,5})([hdw])", text)
    if match:
        return now + int(match[1]) * _SECONDS[match[2]]
    try:
        return moment_of(text)
    except UsageError as error:
        raise UsageError(f"--expires {text[:40]!r}: write 12h, 30d or 8w; or {error}") from None
