"""Names of fictional people, some of them difficult to quote."""

from functools import cache

import numpy as np
import pyarrow as pa

from caudal.generate import text
from caudal.generate.dice import Dice
from caudal.generate.listing import words
from caudal.generate.literals import spellings

GIVEN = words(
    """
    Abel Ada Adela Agnes Alan Alberto Alice Álvaro Amara Ana André Andrea Ángela Anita Anton Arthur
    Astrid Barbara Beatriz Benedict Bernard Björn Brenda Bruno Carla Carlos Carmen Cecilia Cesar
    Charles Chloë Clara Claude Colin Conrad Cora Daniel Daria David Deborah Diego Dolores Dora Edgar
    Edith Eduardo Elena Elias Emil Emma Enrique Erica Ernest Esteban Estelle Eva Fabian Felix
    Fernando Fiona Florence Françoise Frank Gabriel George Gerard Gloria Graciela Greta Guillermo
    Gustav Hannah Harold Hector Helen Henrik Hugo Ignacio Ines Ingrid Irene Isabel Ivan Jack Jacob
    Jamal James Javier Jean Joan Joaquín Jonas Jorge José Joseph Juan Judith Julia Karen Karl Keiko
    Laura Lars Laurence Leila Leo Leticia Lillian Lorenzo Louis Lucía Luis Magnus Malik Marcel
    Margaret María Mariana Marta Martin Mateo Matthew Maurice Mei Mercedes Michael Miguel Miriam
    Mónica Nadia Natalia Nicholas Nicolás Nina Noël Nora Octavio Olga Oliver Óscar Pablo Patricia
    Paul Pedro Peter Philip Pilar Rachel Rafael Ralph Ramón Raúl Rebecca René Ricardo Robert Rosa
    Ruth Samuel Sandra Sara Sebastián Sergio Silvia Simon Sofía Søren Stella Stephen Susan Sylvie
    Teresa Theodore Thomas Tomás Ursula Valeria Vera Vicente Victor Vincent Violet Virginia Walter
    Wendy Yara Yusuf Zoë
    """
)

FAMILY = words(
    """
    Abbott Acosta Adler Aguirre Albrecht Almeida Álvarez Ames Andersson Aranda Archer Arnold Ashby
    Atkins Avery Báez Baker Barlow Barnes Barrios Bauer Beckett Bellamy Benítez Bergman Bianchi
    Blackwood Blanco Boyle Braddock Brandt Bravo Brooks Burke Byrne Cabrera Calloway Campos Carver
    Castro Chandler Chávez Clarke Coleman Conway Cooper Cordero Costa Crane Cross Cruz D'Amico
    D'Angelo D'Arcy Dalton Danvers Dean Delacroix Delgado Díaz Dixon Domínguez Donovan Doyle Drake
    Dubois Duncan Duval Eastman Eklund Ellison Escobar Espósito Estrada Fairfax Farías Ferrari
    Figueroa Fischer Fletcher Flores Fontaine Forsyth Fournier Fraser Fuentes Gallagher Garrido
    Gauthier Gibbs Giménez Godoy Gómez González Goodwin Graves Greene Grimaldi Guzmán Haas Hale
    Halloran Hansen Hargrove Harper Hartmann Hawkins Hayes Heller Henley Herrera Hidalgo Hobbs
    Hoffmann Holloway Howell Ibáñez Irving Iversen Jansen Jarvis Jensen Jiménez Kaplan Keller
    Kendrick Kessler Kimura Klein Kowalski Krüger L'Estrange Lacroix Lambert Larsen Lavalle Leclerc
    Ledesma Lindqvist Lockwood Lombardi Lozano Luna Lynch MacLeod Maldonado Mallory Marchetti Marín
    Márquez Marsh Maxwell Medina Mendoza Mercer Meyer Molina Montero Moreau Moretti Müller Muñoz
    Nakamura Navarro Nguyen Nilsson Novak Núñez O'Brien O'Connell O'Dowd O'Hara O'Leary O'Rourke
    Ocampo Ogden Okafor Olivera Ortega Osborne Pacheco Palmer Paredes Parrish Pereyra Petrov
    Pfeiffer Pike Ponce Prescott Quinn Quiroga Ramos Randall Reyes Ríos Rivas Robles Rojas Romano
    Romero Rossi Rousseau Ruiz Rutherford Saavedra Salinas Sandoval Santos Sawyer Schmidt Schröder
    Sepúlveda Sharma Shepherd Sinclair Sorensen Soto Stanton Steiner Sterling Suárez Sullivan Takeda
    Tanaka Tate Temple Thorne Toledo Torres Underhill Urquiza Valdez Vance Varela Vargas Vega Vidal
    Villanueva Vogel Wagner Walsh Warner Webb Whitaker Wilde Winslow Wolfe Yamada Yates Zamora
    Zapata Ziegler Zimmer Zuñiga
    """
)

HOMES_OF_READERS = ("Ohio", "Leeds", "Adelaide", "Toronto, Ontario", "Austin, TX", "Rosario")
NAMES = 24_000
REGULARS = 240
"""The number of regular actors in Argentine films: the last names of the pool."""


@cache
def names() -> tuple[str, ...]:
    """Return the pool of full names. It is the same for every seed."""
    dice, index = Dice(0), np.arange(NAMES, dtype=np.int64)
    given = dice.below("names/given", index, len(GIVEN))
    family = dice.below("names/family", index, len(FAMILY))
    shape = dice.below("names/shape", index, 400)
    drawn = zip(given.tolist(), family.tolist(), shape.tolist(), strict=True)
    return tuple(_full_name(GIVEN[g], FAMILY[f], s) for g, f, s in drawn)


@cache
def name_literals() -> pa.Array:
    """Return the pool of names as Python literals."""
    return text.pool(spellings(list(names())))


@cache
def profile_names() -> pa.Array:
    """Return profile names of reviewers, as CSV fields. Many have a nickname in quotes."""
    people = names()[:6_000]
    return text.field(text.pool(_profile(name, i) for i, name in enumerate(people)))


def _full_name(given: str, family: str, shape: int) -> str:
    match shape:
        case 0 | 1:
            return f"{given} {family}, Jr."
        case 2 | 3:
            return f'{given} "{family[:3]}{given[-1]}" {family}'
        case 4:
            return f"{given} de l'{family}"
        case _ if shape < 60:
            return f"{given} {GIVEN[shape * 3 % len(GIVEN)][0]}. {family}"
        case _:
            return f"{given} {family}"


def family_name(name: str) -> str:
    """Return the family name in a full name."""
    return name.removesuffix(", Jr.").split()[-1]


def _profile(name: str, i: int) -> str:
    given, family = name.split()[0], family_name(name)
    shapes = (
        name,
        f'{given} {family[0]}. "{given.lower()}{i % 97}"',
        f"{given[0]}. {family}",
        f'{name} "Reader, {family}"' if '"' not in name else name,
        f"A Customer of {HOMES_OF_READERS[i % len(HOMES_OF_READERS)]}",
        f"{given.lower()}_{family.lower()}",
        f"{given} {family}",
    )
    return shapes[i % len(shapes)]
