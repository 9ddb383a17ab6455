//! Words that search treats by what they are, not by how often they stand somewhere.
//!
//! - Function words of each language ([`Language`]): pronouns, articles, prepositions, conjunctions, auxiliaries. They say
//!   how other words belong together and nothing about what a text is about; they are neither indexed nor looked for. They
//!   also tell which language a text is in. Closed classes only, and nothing that is also a name, a month or a thing:
//!   `may`, `will`, `us`, `won` stay out.
//! - Words of asking: what people say to have something told, recalled or put together (`list`, `mention`, `summary`,
//!   `different kinds of`). In a question they say what is to be done with the answer rather than what it is about, and who
//!   spoke of the thing seldom used them. They can mean something (`the order of books`), so they are indexed and looked
//!   for, and count less.
//! - English words whose other forms no suffix leads to (`went`, `children`).
//! - English words that are written one way in Britain and another in America (`colour`, `organise`).
//! - Words that say when something was, and words that ask when; numbers, and words that ask how many.
//! - Words by which something is to be so from then on (`always`, `from now on`, `I prefer`).
//! - Characters of East Asian scripts that carry grammar.
//!
//! All of them are folded as `fold` does. Knows words; must not know texts, queries or the index.

use std::sync::LazyLock;

/// A language in the Latin script whose words have stems here. Of Cyrillic the script is enough to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Language {
    /// What a text is taken for that says nothing else.
    English,
    German,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
}

impl Language {
    /// All of them, English first.
    pub(super) const ALL: [Language; 7] = [
        Language::English,
        Language::German,
        Language::French,
        Language::Spanish,
        Language::Italian,
        Language::Portuguese,
        Language::Dutch,
    ];

    /// Its bit in a [`Languages`].
    pub(super) const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of languages, a bit each.
pub(super) type Languages = u16;

/// What a word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nature {
    /// In which languages it is a function word.
    pub function: Languages,
    /// It says when.
    pub time: bool,
    /// It asks when.
    pub asks_when: bool,
    /// In which languages it is a word of asking.
    pub asking: Languages,
    /// It asks for a summary.
    pub asks_summary: bool,
    /// It is a number.
    pub number: bool,
    /// It asks how many.
    pub asks_number: bool,
    /// One of [`STANDING`] has it.
    pub standing: bool,
}

/// What is known of a folded word. Nothing of most.
pub(super) fn nature(word: &str) -> Nature {
    let table: &[(&str, Nature)] = &TABLE;
    match table.binary_search_by_key(&word, |(word, _)| word) {
        Ok(at) => table.get(at).map(|(_, nature)| *nature).unwrap_or_default(),
        Err(_) => Nature::default(),
    }
}

/// The form that stands for an irregular one in English.
pub(super) fn regular(word: &str) -> Option<&'static str> {
    let table: &[(&str, &'static str)] = &IRREGULAR_TABLE;
    let at = table.binary_search_by_key(&word, |(word, _)| word).ok()?;
    table.get(at).map(|(_, regular)| *regular)
}

/// The American spelling of an English word that is written otherwise in Britain. Of a word with two such places the first is
/// taken to America.
pub(super) fn american(word: &str) -> Option<String> {
    let bytes = word.as_bytes();
    let spelled = |at: usize, british: &str, american: &str, roots: &[&str], endings: &[&str]| {
        let (root, rest) = word.split_at_checked(at)?;
        let ending = rest.strip_prefix(british)?;
        let fits = (endings.is_empty() || endings.contains(&ending)) && roots.contains(&root);
        fits.then(|| [root, american, ending].concat())
    };
    // Nearly all words have none of these, and all words pass through here.
    let mut is_or_ys = None;
    for (at, two) in bytes.windows(2).enumerate() {
        match two {
            b"ou" if bytes.get(at + 2) == Some(&b'r') => return spelled(at, "our", "or", &OUR, &[]),
            b"is" | b"ys" => is_or_ys = Some(at),
            _ => {}
        }
    }
    let at = is_or_ys?;
    spelled(at, "is", "iz", &ISE, &ISE_ENDINGS).or_else(|| spelled(at, "ys", "yz", &YSE, &ISE_ENDINGS))
}

/// Whether an East Asian character mostly carries grammar: pronouns, particles, the copula, question words.
pub(super) fn is_function_character(c: char) -> bool {
    FUNCTION_CHARACTERS.contains(&c)
}

/// Whether a character is Hiragana, which writes Japanese endings and particles far more often than words.
pub(super) fn is_hiragana(c: char) -> bool {
    matches!(c, 'ぁ'..='ゖ')
}

static TABLE: LazyLock<Vec<(&'static str, Nature)>> = LazyLock::new(|| {
    let mut all: Vec<(&str, Nature)> = Vec::new();
    let mut add = |words: &'static str, change: &dyn Fn(&mut Nature)| {
        for word in words.split_ascii_whitespace() {
            let mut nature = Nature::default();
            change(&mut nature);
            all.push((word, nature));
        }
    };
    for (language, words) in FUNCTION_WORDS {
        add(words, &|nature| nature.function = language.bit());
    }
    add(TIME_WORDS, &|nature| nature.time = true);
    add(ASKS_WHEN, &|nature| nature.asks_when = true);
    for (language, words) in ASKING_WORDS {
        add(words, &|nature| nature.asking = language.bit());
    }
    add(ASKS_SUMMARY, &|nature| nature.asks_summary = true);
    add(NUMBERS, &|nature| nature.number = true);
    add(STANDING_WORDS, &|nature| nature.standing = true);
    add(ASKS_NUMBER, &|nature| nature.asks_number = true);
    add(ASKING_PAIRS, &|nature| nature.asking = Languages::MAX);
    all.sort_by_key(|(word, _)| *word);
    all.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1.function |= later.1.function;
            earlier.1.time |= later.1.time;
            earlier.1.asks_when |= later.1.asks_when;
            earlier.1.asking |= later.1.asking;
            earlier.1.asks_summary |= later.1.asks_summary;
            earlier.1.number |= later.1.number;
            earlier.1.asks_number |= later.1.asks_number;
            earlier.1.standing |= later.1.standing;
        }
        same
    });
    all
});

static IRREGULAR_TABLE: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for line in IRREGULAR.lines() {
        let mut words = line.split_ascii_whitespace();
        if let Some(regular) = words.next() {
            all.extend(words.map(|word| (word, regular)));
        }
    }
    all.sort_by_key(|(word, _)| *word);
    all
});

/// Single letters are what an apostrophe leaves of `isn't`, `they'll`, `l'avion`, `dell'arte`.
const FUNCTION_WORDS: [(Language, &str); 7] = [
    (
        Language::English,
        "a about after again against all also am among an and any are as at be because been before being between both \
         but by can cannot could did do does doing done during each either else ever every few for from further had has \
         have having he hence her here hers herself him himself his how however i if in into is it its itself just many \
         me might mine more most much must my myself neither no nor not now of off on once one only onto or other our \
         ours ourselves out over own per same shall she should since so some such than that the their theirs them \
         themselves then there these they this those though through thus to too under until up upon very was we were \
         what when where whether which while who whom whose why with within without would yet you your yours yourself \
         yourselves \
         ain aren couldn d didn doesn hadn hasn haven isn ll m mightn mustn needn re s shan shouldn t ve wasn weren \
         wouldn",
    ),
    (
        Language::German,
        "aber als am an auch auf aus bei bin bis bist da damit dann das dass dein deine dem den der des die dir doch du \
         durch ein eine einem einen einer eines er es euch euer für habe haben hat hatte hatten ich ihm ihn ihnen ihr \
         ihre ihrem ihren ihrer im in ist ja jede jeder jedes kann kein keine keinen mein meine meinem meinen meiner mich \
         mir mit nach nicht noch nur ob oder ohne sein seine seinem seinen seiner sich sie sind so über um und uns unser \
         unsere unter vom von vor war waren warum was weil wenn wer werden wie wieder wir wird wo wurde zu zum zur zwischen",
    ),
    (
        Language::French,
        "ai as au aussi aux avec avez avoir avons c ce ces cet cette ceux chez comme d dans de des donc du elle elles en \
         es est et été être eu eux il ils j je l la le les leur leurs lui m ma mais me même mes moi mon n ne nos notre \
         nous on ont ou où par pas pour pourquoi qu que quel quelle quelles quels qui s sa sans se ses si son sont sous \
         suis sur t ta te tes toi ton très tu un une vos votre vous y à ça étaient était",
    ),
    (
        Language::Spanish,
        "a al algo ante aunque como con cual cuál cuando cuándo de del desde donde dónde e el ella ellas ellos en entre \
         era eran eres es esa esas ese eso esos esta está están estas este esto estos estoy fue fueron ha han has hasta hay he \
         la las le les lo los más me mi mis mucho muy nada ni no nos nosotros nuestra nuestro o os para pero por porque \
         pues que qué quien quién se según ser si sí sin sobre son soy su sus también te tengo tiene todo tu tus un una \
         uno unos y ya yo él",
    ),
    (
        Language::Italian,
        "a ad agli ai al alla alle allo anche c che chi ci come con cosa cui d da dagli dai dal dalla dalle de degli dei \
         del della delle dello di dove e ed era erano essere fra gli ha hai hanno ho i il in io l la le lei li lo loro lui \
         ma me mi mia mie miei mio ne negli nei nel nella nelle noi non nostra nostro o per perché però più quale quando \
         quello questa queste questi questo qui quindi se sei senza si sia siamo sono su sua sue sugli sui sul sulla suo \
         suoi te ti tra tu tua tuo un una uno vi voi è",
    ),
    (
        Language::Portuguese,
        "a ao aos as até com como da das de dela dele deles depois do dos e ela elas ele eles em entre era eram essa esse \
         esta está estão estava este eu foi foram há isso isto já lhe mais mas me mesmo meu meus minha minhas muito na nas \
         nem no nos nossa nosso num numa não o onde os ou para pela pelas pelo pelos por porque qual quando que quem se \
         sem ser seu seus só sua suas também te tem tinha um uma umas uns você vocês à às é",
    ),
    (
        Language::Dutch,
        "aan al als bij dan dat de deze die dit doch door dus een en er ging had heb hebben heeft hem het hier hij hoe \
         hun ik in is ja je jij jouw jullie kan kunnen maar me meer men met mij mijn na naar niet nog nu of om omdat ons \
         onze ook op over te toen tot u uit uw van veel voor want waren was wat we wel werd wie wij wordt ze zei zich zij \
         zijn zo zonder zou",
    ),
];

const TIME_WORDS: &str = "\
     yesterday today tonight tomorrow ago last next recently lately earlier since soon day days week weeks weekend \
     weekends month months year years decade morning evening afternoon night summer winter spring autumn \
     monday tuesday wednesday thursday friday saturday sunday \
     january february march april may june july august september october november december \
     gestern heute morgen vorgestern übermorgen letzte letzten letzter nächste nächsten tag tage woche wochen monat \
     monate jahr jahre montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli \
     oktober dezember \
     hier aujourd demain dernier dernière prochain prochaine jour jours semaine semaines mois an ans année années lundi \
     mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril juin juillet août septembre octobre \
     novembre décembre \
     ayer hoy mañana pasado pasada próximo próxima día días semana semanas mes meses año años lunes martes miércoles \
     jueves viernes sábado domingo enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre \
     ieri oggi domani scorso scorsa prossimo prossima giorno giorni settimana settimane mese mesi anno anni lunedì martedì \
     mercoledì giovedì venerdì sabato domenica gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre \
     ontem hoje amanhã passado passada dia dias mês ano anos janeiro fevereiro março maio junho julho setembro outubro \
     novembro dezembro \
     gisteren vandaag morgen vorige volgende dag dagen weken maand maanden jaar jaren maandag dinsdag woensdag donderdag \
     vrijdag zaterdag zondag januari februari maart mei juni juli augustus \
     вчера сегодня завтра назад день дня дней неделя неделю недели месяц месяца месяцев год года лет \
     昨天 今天 明天 昨日 今日 明日 去年 今年 明年 上周 下周 先週 来週 어제 오늘 내일 작년 올해 내년 เมื่อ วันนี้";

const ASKS_WHEN: &str = "\
     when wann quand cuándo quando wanneer когда \
     date dates datum fecha data дата \
     时间 時間 日期 时候 時候 何时 何時 几时 哪年 哪天 哪月 几月 几号 何年 何月 何日 いつ 언제 날짜";

/// Verbs of telling, recalling, wishing and advising; nouns of what is asked for in general, and of talk; adjectives that
/// say which or how much of it; words that say how far a question goes.
const ASKING_WORDS: [(Language, &str); 7] = [
    (
        Language::English,
        "answer answered answers ask asked asking asks bring bringing brings brought describe described \
         describes describing discuss discussed discusses discussing explain explained explaining explains gave give given \
         gives giving list listed listing lists mention mentioned mentioning mentions outline provide provided provides \
         providing recall recalled recap remember remembered remembers remind reminded reminds said say saying says share \
         shared shares sharing show showed showing shown shows speak speaking spoke spoken summarise summarised summarize \
         summarized talk talked talking talks tell telling tells told \
         advice advise advised help helped helping helps know knowing known knows knew like liked likes need needed needs \
         please recommend recommendation recommendations recommended recommends suggest suggested suggestion suggestions \
         suggests think thinking thinks thought tried tries try trying use used uses using want wanted wants wonder \
         wondering \
         aspect aspects chat chats conversation conversations description detail details discussion discussions example \
         examples explanation info information item items kind kinds message messages number numbers order overview \
         question questions sequence sort sorts summary summaries thing things topic topics type types way ways \
         certain clear clearly comprehensive current currently different exact exactly main overall particular \
         particularly several specific specifically total various \
         across according based concerning include included includes including involve involved involves involving \
         regarding relate related relates relating throughout",
    ),
    (
        Language::German,
        "antwort antworten beschreibe beschreiben bitte erinnere erinnern erinnerst erkläre erklären erwähne erwähnen \
         erwähnt erzähl erzähle erzählen erzählt frage fragen fragte gefragt geben gegeben gesagt gesprochen gib nannte \
         nenne nennen reden redeten sag sage sagen sagst sagt sagte sagten sprach sprachen sprechen zeige zeigen \
         zusammenfassen empfehlen empfehle empfiehl empfohlen helfen hilf möchte möchten raten schlage vorschlagen \
         weiss weisst wissen will wollen wollte wollten \
         aspekt aspekte art arten beispiel beispiele details ding dinge einzelheiten empfehlung empfehlungen gespräch \
         gespräche gesprächen information informationen nachricht nachrichten punkt punkte reihenfolge sache sachen thema \
         themen übersicht überblick unterhaltung vorschlag vorschläge zusammenfassung \
         bestimmt bestimmte bestimmten einzeln einzelne genau verschieden verschiedene verschiedenen verschiedener \
         betreffend bezüglich hinsichtlich",
    ),
    (
        Language::French,
        "aide aider aidez conseille conseiller conseillé décrire décris décrit demandé demander dire dis dit donne donner \
         donné expliquer explique expliqué mentionné mentionner montre montrer parler parle parlé peux peut pouvez pourrais \
         proposé proposer raconte raconter rappelle rappeler recommandé recommander résume résumer sais savez savoir suggéré \
         suggérer veux voudrais vouloir voulu \
         aspects chose choses conversation conversations conseil conseils détail détails discussion discussions exemple \
         exemples genre information informations liste message messages ordre question questions recommandation \
         recommandations réponse résumé sorte sortes suggestion suggestions sujet sujets type types \
         certain certaine certaines certains différent différente différentes différents exactement précis précise \
         concernant",
    ),
    (
        Language::Spanish,
        "ayuda ayudar ayudas conté contado contar contó cuenta cuéntame da dado dame decir describe describir di dice dicho \
         dije dijiste dijo dime explica explicado explicar hablado hablamos hablar mencionado mencionar mencioné mencionó \
         muestra pregunté preguntar puedes quería querría quiero quiere recomendado recomendar recomiendas recuerda \
         recuerdas recuérdame resume resumir sabe sabes saber sugerido sugerir sugieres \
         aspecto aspectos consejo consejos conversación conversaciones cosa cosas detalle detalles ejemplo ejemplos \
         información lista mensaje mensajes orden pregunta preguntas recomendación recomendaciones respuesta resumen \
         sugerencia sugerencias tema temas tipo tipos \
         cierta ciertas cierto ciertos diferente diferentes distintas distintos exactamente varias varios",
    ),
    (
        Language::Italian,
        "aiuta aiutami aiutare chiedere chiesto consiglia consigliato descrivere descrivi detto dice dici dimmi dire disse \
         elenca menzionato parlare parlato puoi potresti raccomandato raccontare raccontato ricorda ricordami ricordi \
         riassumere riassumi sai sapere spiega spiegare spiegato suggerire suggerisci suggerito voglio vorrei vuoi \
         aspetti aspetto conversazione conversazioni consigli consiglio cosa cose dettagli dettaglio domanda domande \
         elenco esempi esempio genere informazione informazioni lista messaggi messaggio ordine riassunto risposta \
         suggerimenti suggerimento tema temi tipi tipo \
         certa certe certi certo diversa diverse diversi diverso esattamente varie vari",
    ),
    (
        Language::Portuguese,
        "ajuda ajudar conta contar contou descreva descrever diga disse dizer explicar explicou explique falamos falar \
         falou lembra lembrar lembre liste mencionado mencionar mencionei mencionou mostre perguntei pode poderia queria \
         quero recomenda recomendado recomendou resuma resumir sabe saber sugere sugeriu sugerir \
         aspecto aspectos coisa coisas conselho conselhos conversa conversas detalhe detalhes exemplo exemplos informação \
         informações lista mensagem mensagens ordem pergunta perguntas recomendação recomendações resposta resumo sugestão \
         sugestões tema temas tipo tipos \
         certa certas certo certos diferente diferentes exatamente várias vários",
    ),
    (
        Language::Dutch,
        "beschrijf beschrijven gaf gegeven geef geven genoemd gesproken gevraagd gezegd help helpen herinner herinneren \
         leg noem noemde noemen praten samenvatten sprak spraken spreken toon vertel vertelde vertellen verteld vraag \
         vragen vroeg weet weten wil wilde willen zeg zeggen aanraden aanbevolen voorstellen \
         aanbeveling aanbevelingen aspect aspecten bericht berichten details ding dingen gesprek gesprekken informatie \
         lijst onderwerp onderwerpen overzicht punten samenvatting soort soorten suggestie suggesties volgorde voorbeeld \
         voorbeelden \
         bepaald bepaalde precies verschillend verschillende betreffende",
    ),
];

/// Without `one`, which in most languages is an article or a pronoun, and without what is rather a common word.
const NUMBERS: &str = "\
     two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen \
     nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands million millions \
     billion once twice couple dozen dozens half quarter \
     zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreissig vierzig fünfzig hundert tausend einmal \
     zweimal dreimal dutzend halb hälfte \
     deux trois quatre cinq sept huit neuf dix onze douze vingt trente quarante cinquante cent mille fois douzaine demi \
     dos tres cuatro cinco seis siete ocho nueve diez once doce veinte treinta cuarenta cincuenta cien mil veces docena \
     tre quattro cinque sette otto nove dieci undici dodici venti trenta quaranta cinquanta cento mila volte \
     dois duas três quatro sete oito nove dez onze doze vinte trinta quarenta cinquenta cem vezes dúzia \
     twee drie vijf zes zeven negen tien twaalf twintig dertig veertig vijftig honderd duizend keer \
     два две три четыре пять шесть семь восемь девять десять двадцать сто тысяча тысяч";

/// The words that ask with `how` are in [`is_measure`]. Without 多少, which is asked of what is no number as well.
const ASKS_NUMBER: &str = "\
     wieviel wieviele combien cuánto cuánta cuántos cuántas quanto quanta quanti quante quantos quantas hoeveel сколько \
     几个 幾個 几次 幾次 几人 几位 多大 多高 多远 多遠 多长 多長 何人 何回 何個 何歳 몇명 몇번 몇개 얼마";

/// Whether `how` asks with it how many or how much there is of something.
pub(super) fn is_measure(word: &str) -> bool {
    matches!(
        word,
        "many"
            | "much"
            | "often"
            | "old"
            | "far"
            | "big"
            | "tall"
            | "high"
            | "deep"
            | "heavy"
            | "viel"
            | "viele"
            | "vielen"
            | "oft"
            | "alt"
            | "weit"
            | "gross"
            | "hoch"
            | "schwer"
            | "veel"
            | "vaak"
            | "oud"
            | "ver"
            | "groot"
            | "hoog"
    )
}

/// Whether a character is a number in East Asian scripts. Not the one of one, which is in every other word.
pub(super) fn is_number_character(c: char) -> bool {
    matches!(c, '二' | '三' | '四' | '五' | '六' | '七' | '八' | '九' | '十' | '百' | '千' | '万' | '萬' | '两' | '兩')
}

/// With what a sentence begins that says how something is to be from then on.
pub(super) const STANDING_FIRST: [&str; 13] = [
    "always",
    "never",
    "immer",
    "niemals",
    "toujours",
    "jamais",
    "siempre",
    "nunca",
    "sempre",
    "altijd",
    "nooit",
    "всегда",
    "항상",
];

/// What may stand before that.
pub(super) const POLITE: [&str; 14] = [
    "please",
    "and",
    "so",
    "also",
    "but",
    "bitte",
    "und",
    "por",
    "favor",
    "per",
    "favore",
    "alstublieft",
    "en",
    "пожалуйста",
];

/// What says so wherever it stands, or says what somebody prefers.
pub(super) const STANDING: [&[&str]; 32] = [
    &["i", "prefer"],
    &["i", "d", "prefer"],
    &["i", "would", "prefer"],
    &["i", "d", "rather"],
    &["i", "would", "rather"],
    &["ich", "bevorzuge"],
    &["ich", "möchte", "lieber"],
    &["ich", "hätte", "lieber"],
    &["je", "préfère"],
    &["prefiero"],
    &["preferisco"],
    &["prefiro"],
    &["ik", "heb", "liever"],
    &["предпочитаю"],
    &["from", "now", "on"],
    &["whenever", "i", "ask"],
    &["when", "i", "ask"],
    &["every", "time", "i", "ask"],
    &["ab", "jetzt"],
    &["ab", "sofort"],
    &["von", "nun", "an"],
    &["jedes", "mal", "wenn", "ich"],
    &["désormais"],
    &["dorénavant"],
    &["chaque", "fois", "que", "je"],
    &["a", "partir", "de", "ahora"],
    &["cada", "vez", "que"],
    &["d", "ora", "in", "poi"],
    &["ogni", "volta", "che"],
    &["a", "partir", "de", "agora"],
    &["sempre", "que"],
    &["vanaf", "nu"],
];

/// A word of each of those, by which texts are told that need not be looked through for them.
const STANDING_WORDS: &str = "\
     now ask prefer rather bevorzuge lieber jetzt sofort nun jedes préfère désormais dorénavant chaque prefiero ahora vez \
     preferisco ora ogni prefiro agora sempre liever vanaf предпочитаю";

/// The same in scripts without spaces, and in Korean, whose words have endings.
pub(super) const STANDING_UNSPACED: [&str; 12] = [
    "从现在起",
    "從現在起",
    "从今以后",
    "從今以後",
    "以后都",
    "以後都",
    "每次我",
    "我更喜欢",
    "我更喜歡",
    "我偏好",
    "今後は",
    "앞으로는",
];

const ASKS_SUMMARY: &str = "\
     summary summaries summarise summarised summarize summarized overview recap \
     zusammenfassen zusammenfassung überblick résume résumé résumer resumen resumir resume riassumere riassumi riassunto \
     resumo resuma samenvatten samenvatting overzicht \
     总结 總結 概括 概述 要約 요약";

/// What an assistant is reminded of behind `did you` or `you`, as it is said in a question and in a statement.
const TELLING: [&str; 15] = [
    "advise",
    "describe",
    "explain",
    "give",
    "list",
    "mention",
    "outline",
    "propose",
    "provide",
    "recommend",
    "say",
    "show",
    "suggest",
    "tell",
    "write",
];

const TOLD: [&str; 19] = [
    "asked",
    "brought",
    "discussed",
    "talked",
    "advised",
    "described",
    "explained",
    "gave",
    "listed",
    "mentioned",
    "outlined",
    "proposed",
    "provided",
    "recommended",
    "said",
    "showed",
    "suggested",
    "told",
    "wrote",
];

/// Whether `did you` goes on with having said something.
pub(super) fn is_telling(word: &str) -> bool {
    TELLING.contains(&word)
}

/// Whether `you` or `I` goes on with having said something.
pub(super) fn is_told(word: &str) -> bool {
    TOLD.contains(&word)
}

const ASKING_PAIRS: &str = "\
     关于 關於 来着 來著 请问 請問 告诉 告訴 知道 记得 記得 介绍 介紹 说说 說說 讲讲 講講 谈谈 談談 提到 提过 提過 总结 總結 概括 列出 建议 建議 \
     推荐 推薦 一下 教え 覚え 要約 提案 알려 말해 기억 요약 추천";

/// A line for each form that stands for the others: first it, then they.
const IRREGULAR: &str = "\
arise arose arisen
be was were been
beat beaten
become became
begin began begun
bend bent
bite bit bitten
bleed bled
blow blew blown
break broke broken
breed bred
bring brought
build built
buy bought
catch caught
child children
choose chose chosen
come came
creep crept
deal dealt
dig dug
draw drew drawn
dream dreamt
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
flee fled
fly flew flown
foot feet
forget forgot forgotten
forgive forgave forgiven
freeze froze frozen
get got gotten
give gave given
go went gone goes
good better best
goose geese
grow grew grown
half halves
hang hung
hear heard
hide hid hidden
hold held
keep kept
kneel knelt
knife knives
know knew known
lay laid
lead led
leaf leaves
leap leapt
learn learnt
leave left
lend lent
lie lain
life lives
light lit
loaf loaves
lose lost
make made
man men
mean meant
meet met
mistake mistook mistaken
mouse mice
overcome overcame
pay paid
person people
prove proven
ride rode ridden
ring rang rung
rise rose risen
run ran
say said
see saw seen
seek sought
self selves
sell sold
send sent
shake shook shaken
shelf shelves
shoot shot
show shown
shrink shrank
sing sang sung
sink sank sunk
sit sat
sleep slept
slide slid
speak spoke spoken
spend spent
spin spun
stand stood
steal stole stolen
stick stuck
strike struck
swear swore sworn
sweep swept
swim swam swum
swing swung
take took taken
teach taught
tear tore torn
tell told
thief thieves
think thought
throw threw thrown
tooth teeth
understand understood
undertake undertook undertaken
wake woke woken
wear wore worn
weep wept
wife wives
win won
withdraw withdrew withdrawn
wolf wolves
woman women
worse worst bad
write wrote written
aging ageing
aluminum aluminium
cancel cancelled cancelling
catalog catalogue catalogues catalogued
center centre centres centred
cozy cosy
defense defence defences
dialog dialogue dialogues
enroll enrol enrols enrolment
fiber fibre fibres
fuel fuelled fuelling
fulfill fulfil fulfils fulfilment
gray grey greys
jewelry jewellery
judgment judgement judgements
label labelled labelling
level levelled levelling
license licence licences
liter litre litres
meter metre metres
model modelled modelling modeller
mold mould moulds mouldy
mom mum mums
offense offence offences
pajamas pyjamas
plow plough ploughs
program programme programmes
skeptical sceptical
theater theatre theatres
tire tyre tyres
travel travelled traveller travellers travelling
";

/// What stands before `our`.
const OUR: [&str; 32] = [
    "arm",
    "behavi",
    "cand",
    "clam",
    "col",
    "demean",
    "disc",
    "disfav",
    "dishon",
    "discol",
    "endeav",
    "enam",
    "fav",
    "ferv",
    "flav",
    "harb",
    "hon",
    "hum",
    "lab",
    "misbehavi",
    "neighb",
    "od",
    "parl",
    "ranc",
    "rig",
    "rum",
    "savi",
    "sav",
    "splend",
    "tum",
    "vap",
    "vig",
];

/// What stands before `ise`. Words that are written so everywhere (`advertise`, `precise`) are none of these.
const ISE: [&str; 78] = [
    "agon",
    "apolog",
    "author",
    "brutal",
    "capital",
    "categor",
    "central",
    "character",
    "civil",
    "colon",
    "commercial",
    "computer",
    "container",
    "critic",
    "crystall",
    "custom",
    "decentral",
    "democrat",
    "digit",
    "emphas",
    "energ",
    "equal",
    "familiar",
    "fantas",
    "fertil",
    "final",
    "formal",
    "general",
    "global",
    "harmon",
    "hospital",
    "idol",
    "individual",
    "industrial",
    "initial",
    "international",
    "item",
    "jeopard",
    "legal",
    "local",
    "material",
    "maxim",
    "mechan",
    "memor",
    "mesmer",
    "minim",
    "mobil",
    "modern",
    "modular",
    "monet",
    "neutral",
    "normal",
    "optim",
    "organ",
    "parallel",
    "parameter",
    "penal",
    "personal",
    "polar",
    "popular",
    "priorit",
    "public",
    "random",
    "rational",
    "real",
    "recogn",
    "reorgan",
    "revolution",
    "scrutin",
    "serial",
    "social",
    "special",
    "stabil",
    "standard",
    "summar",
    "sympath",
    "synchron",
    "util",
];

/// What stands before `yse`.
const YSE: [&str; 3] = ["anal", "catal", "paral"];

const ISE_ENDINGS: [&str; 9] = ["e", "ed", "er", "ers", "es", "ing", "able", "ation", "ations"];

const FUNCTION_CHARACTERS: &[char] = &[
    '的', '了', '吗', '嗎', '呢', '吧', '啊', '呀', '哦', '嘛', '么', '麼', '是', '在', '有', '和', '与', '與', '及',
    '也', '都', '就', '很', '还', '還', '又', '被', '把', '给', '給', '让', '讓', '对', '對', '从', '從', '到', '为',
    '為', '以', '之', '其', '而', '但', '或', '我', '你', '他', '她', '它', '们', '們', '您', '这', '這', '那', '哪',
    '谁', '誰', '什', '怎', '个', '個', '着', '著', '过', '過', 'は', 'が', 'を', 'に', 'で', 'と', 'も', 'の', 'へ',
    'や',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_and_folded() {
        for (word, kind) in TABLE.iter() {
            assert_eq!(nature(word), *kind, "{word}");
            let mut folded = String::new();
            crate::search::fold::fold(word, |c| folded.push(c));
            crate::search::fold::recompose(&mut folded);
            assert_eq!(folded, *word);
        }
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0));
        for word in ["us", "won", "", "budget", "猫"] {
            assert_eq!(nature(word), Nature::default(), "{word}");
        }
        assert!(nature("may").time && nature("may").function == 0);
        assert_eq!(nature("will"), Nature { asking: Language::German.bit(), ..Nature::default() });
        assert_eq!(
            nature("in").function,
            Language::English.bit() | Language::German.bit() | Language::Italian.bit() | Language::Dutch.bit()
        );
    }

    #[test]
    fn irregular_forms_lead_to_one_regular_form_and_no_further() {
        assert!(IRREGULAR_TABLE.is_sorted_by(|a, b| a.0 < b.0), "a word stands twice");
        for (word, regular_form) in IRREGULAR_TABLE.iter() {
            assert_eq!(regular(word), Some(*regular_form));
            assert_eq!(regular(regular_form), None, "{regular_form}");
        }
        assert_eq!(regular("went"), Some("go"));
        assert_eq!(regular("walked"), None);
    }

    #[test]
    fn one_word_has_one_spelling() {
        for (british, expected) in [
            ("colour", "color"),
            ("neighbourhood", "neighborhood"),
            ("organised", "organized"),
            ("prioritisation", "prioritization"),
            ("analysing", "analyzing"),
        ] {
            assert_eq!(american(british).as_deref(), Some(expected));
        }
        for word in ["hour", "four", "tourist", "our", "precise", "advertise", "promised", "analysis", "color", "", "é"]
        {
            assert_eq!(american(word), None, "{word}");
        }
    }

    #[test]
    fn characters_that_carry_grammar() {
        assert!(is_function_character('的') && is_function_character('は') && !is_function_character('猫'));
        assert!(is_hiragana('る') && !is_hiragana('ル'));
    }
}
